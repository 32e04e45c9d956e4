/** Runs one command to its end and keeps what it said. */

/** How to run it. */
export interface RunOptions {
  readonly args: readonly string[];
  readonly cwd: string;
  /** Added to this process's environment. */
  readonly env?: Readonly<Record<string, string>>;
}

/** Whether it exited with 0, and its two outputs, errors last. */
export interface RunResult {
  readonly ok: boolean;
  readonly output: string;
}

/** Never throws: a command that cannot be started is one that failed, and `output` says why. */
export async function run(command: string, options: RunOptions): Promise<RunResult> {
  try {
    const { success, stdout, stderr } = await new Deno.Command(command, {
      args: [...options.args],
      cwd: options.cwd,
      // Backtraces and "experimental" notices would bury what a person should read.
      env: { NO_COLOR: "1", RUST_BACKTRACE: "0", ...options.env },
      stdin: "null",
    }).output();
    const text = new TextDecoder();
    const output = `${text.decode(stdout)}${text.decode(stderr)}`
      .replaceAll(/^Warning Permissions in the config file.*\n/gm, "");
    return { ok: success, output };
  } catch (error) {
    return { ok: false, output: `Cannot run ${command}: ${String(error)}` };
  }
}
