/** Runs an engine's program for its version, as the engine itself would run: its user, its limits. */
import { writeFileAtomic } from "@heddle/common/atomic_file";
import { probeArguments, probeUnitOf } from "../../core/systemd/engine_unit.ts";
import { environmentFile } from "../../core/systemd/env_file.ts";
import { callSystemd, cannotRunSystemd, SYSTEMCTL, SYSTEMD_RUN } from "./systemctl.ts";

/** Enough for a version and for the words of a failure, whatever else it prints. */
const OUTPUT_BYTES_MAX = 8_192;

export interface ProbeOptions {
  readonly path: string;
  readonly versionArgs: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly user: string;
  /** Where its environment is written to: 0600. */
  readonly envFile: string;
  readonly secondsMax: number;
  /** Stops the unit early; what is returned then means nothing. */
  readonly signal: AbortSignal;
}

/**
 * What it printed, ended by a line `#exit CODE`, or by `#timeout`: as heddle-shim does it. Throws
 * `system` when systemd cannot be asked.
 */
export async function probeAsUnit(options: ProbeOptions): Promise<string> {
  const { path, versionArgs, env, user, envFile, secondsMax, signal } = options;
  await writeFileAtomic(envFile, environmentFile(env));
  const handle = crypto.randomUUID().slice(0, 8);
  const args = probeArguments({
    handle,
    argv: [path, ...versionArgs],
    variables: Object.keys(env),
    envFile,
    user,
    seconds: secondsMax,
  });
  const startedAt = performance.now();
  let child: Deno.ChildProcess;
  try {
    child = new Deno.Command(SYSTEMD_RUN, {
      args: [...args],
      clearEnv: true,
      env: { LC_ALL: "C" },
      stdin: "null",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
  } catch (error) {
    throw cannotRunSystemd(SYSTEMD_RUN, error);
  }
  // The unit is no child of systemd-run: it would go on for as long as it may.
  const stop = () =>
    void callSystemd(SYSTEMCTL, ["stop", "--no-block", probeUnitOf(handle)]).catch(() => {});
  signal.addEventListener("abort", stop);
  if (signal.aborted) stop();
  const [out, err, status] = await Promise.all([
    readStart(child.stdout),
    readStart(child.stderr),
    child.status,
  ]).finally(() => signal.removeEventListener("abort", stop));
  const said = `${out}\n${err}`;
  // Its own exit code would be passed on; of one that was killed there is none.
  if (performance.now() - startedAt >= secondsMax * 1_000) return `${said}\n#timeout\n`;
  return `${said}\n#exit ${shellCode(status.code, err)}\n`;
}

/** Codes as a shell has them: 126 for what may not be run, 127 for what is not there. */
function shellCode(code: number, words: string): number {
  if (code === 203) return 126;
  return code === 1 && /Failed to find executable/.test(words) ? 127 : code;
}

// Read no further than that, and what goes on printing is ended by a broken pipe.
async function readStart(stream: ReadableStream<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const chunk of stream) {
    text += decoder.decode(chunk, { stream: true });
    if (text.length >= OUTPUT_BYTES_MAX) break;
  }
  return text.slice(0, OUTPUT_BYTES_MAX);
}
