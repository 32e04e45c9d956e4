/** What misbehaving engines leave behind: no process, no open file, no memory, and little on disk. */
import { deepEqual, equal, ok } from "node:assert/strict";
import { join } from "node:path";
import { openNode } from "./supervisor_fake.ts";

const WORKER = { rank: 1, shardCount: 2 };
const MIB = 1024 ** 2;
const LOG_MIB_MAX = 64;
const KEPT_MIB_MAX = 4;
/** For a gigabyte, also where others want the disk and the processors. */
const FLOOD_MS_MAX = 120_000;

/** Bytes of everything below a folder; what goes away meanwhile is not counted. */
async function bytesBelow(folder: string): Promise<number> {
  try {
    let sum = 0;
    for await (const { name, isDirectory } of Deno.readDir(folder)) {
      const path = join(folder, name);
      sum += isDirectory
        ? await bytesBelow(path)
        : await Deno.stat(path).then(({ size }) => size, () => 0);
    }
    return sum;
  } catch {
    return 0;
  }
}

/** What a shell says: Deno itself does not look into /proc. */
async function shell(script: string): Promise<string> {
  const { stdout } = await new Deno.Command("/bin/sh", { args: ["-c", script] }).output();
  return new TextDecoder().decode(stdout).trim();
}

async function openFiles(): Promise<number> {
  return Number(await shell(`ls /proc/${Deno.pid}/fd | wc -l`));
}

Deno.test("an engine that floods its log with a gigabyte fills neither the disk nor the agent", async () => {
  await using node = await openNode();
  const before = Deno.memoryUsage().rss;
  const { shardId } = await node.start(
    // It goes on only while its log is cut, so that there are never more than 192 MiB of it.
    `n=0; while [ $n -lt 16 ]; do
       yes "$(printf '%0999d' 7)" | head -c 67108864; n=$((n+1))
       while [ "$(stat -c %s log)" -gt 134217728 ]; do sleep 0.05; done; done
     echo; echo 'ValueError: at last'; exit 1`,
    WORKER,
  );
  const failed = await node.reached(shardId, "failed", FLOOD_MS_MAX);
  equal(failed.logTail.at(-1), "ValueError: at last");
  equal(failed.logTail.length, 50);
  const left = (await bytesBelow(node.root)) / MIB;
  ok(left < LOG_MIB_MAX + KEPT_MIB_MAX + 1, `${left} MiB are left`);
  const grown = (Deno.memoryUsage().rss - before) / MIB;
  ok(grown < 256, `the agent has grown by ${grown} MiB`);
  deepEqual(await node.launcher.list(), []);
});

/** Ways to misbehave, each over within moments. */
const BAD: readonly string[] = [
  "exit 1",
  "kill -KILL $$",
  "setsid sleep 60 & sleep 61 & exit 3",
  "(trap '' TERM HUP; sleep 62) & kill -SEGV $$",
  "yes noise | head -c 1000000; exit 1",
  "exec /no/such/engine",
  "exec 1>&- 2>&-; exit 4",
];

Deno.test("engines that fail in every way leave no process and no open file", async () => {
  await using node = await openNode();
  const fail = async (script: string, number: number) => {
    const { shardId } = await node.start(script, {
      ...WORKER,
      shardId: `bad-${number}-1`,
      portFirst: 20_000 + number,
      portCount: 1,
    });
    await node.reached(shardId, "failed", FLOOD_MS_MAX);
  };
  await fail("exit 1", BAD.length);
  const files = await openFiles();
  for (const [number, script] of BAD.entries()) await fail(script, number);
  deepEqual(await node.launcher.list(), []);
  ok(await openFiles() <= files + 4, "none of their files is still open");
  const left = await shell(`grep -als "HEDDLE_SHIM_RUN=.*${node.root}" /proc/[0-9]*/environ`);
  equal(left, "", "nothing with their mark lives");
});
