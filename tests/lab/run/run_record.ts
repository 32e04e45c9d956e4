/**
 * What a run of the lab leaves outside of its own namespaces: control groups. They are written down
 * before they are made, so that the next run can remove what a killed one left. Everything else
 * (processes, mounts, networks) ends with the namespaces, however the run ends.
 */
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { attemptCommand, runCommand } from "../command.ts";

export const CGROUP_SCRIPT = fileURLToPath(new URL("../machine/cgroup.sh", import.meta.url));

const recordSchema = z.object({
  pid: z.number().int(),
  /** The process's start, by the kernel: a pid alone would be somebody else's one day. */
  started: z.string(),
  cgroup: z.string().regex(/^heddle-lab\/[a-z0-9-]+$/),
});

/** A run that is going on. */
export interface RunRecord {
  /** Control group below which its nodes are. */
  readonly cgroup: string;
  readonly file: string;
}

/** Writes down a run of this process. */
export async function beginRun(cache: string): Promise<RunRecord> {
  const folder = join(cache, "runs");
  await Deno.mkdir(folder, { recursive: true });
  const cgroup = `heddle-lab/run-${Deno.pid}`;
  const file = join(folder, `${Deno.pid}.json`);
  const started = await startOf(Deno.pid);
  await Deno.writeTextFile(file, JSON.stringify({ pid: Deno.pid, started, cgroup }));
  return { cgroup, file };
}

/** Removes a run's control groups, which must be empty by now, and its record. */
export async function endRun({ cgroup, file }: RunRecord): Promise<void> {
  await runCommand([CGROUP_SCRIPT, "remove", cgroup]);
  await Deno.remove(file).catch(() => {});
}

/** Cleans up after runs that were killed. Returns how many others go on. */
export async function cleanUpAfterOthers(cache: string): Promise<number> {
  const folder = join(cache, "runs");
  await Deno.mkdir(folder, { recursive: true });
  let others = 0;
  for await (const { name } of Deno.readDir(folder)) {
    const file = join(folder, name);
    const record = recordSchema.safeParse(await readJson(file));
    if (!record.success) {
      await Deno.remove(file).catch(() => {});
      continue;
    }
    const { pid, started, cgroup } = record.data;
    if (await startOf(pid) === started) others++;
    else await endRun({ cgroup, file });
  }
  return others;
}

async function startOf(pid: number): Promise<string | undefined> {
  const { code, stdout } = await attemptCommand([CGROUP_SCRIPT, "started", String(pid)]);
  return code === 0 ? stdout.trim() : undefined;
}

async function readJson(file: string): Promise<unknown> {
  try {
    return JSON.parse(await Deno.readTextFile(file));
  } catch {
    return undefined;
  }
}
