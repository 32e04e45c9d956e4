/** Runs one program to its end, within a time. */
import { errorText } from "@heddle/proto/error";
import { shellEnv } from "../../core/shell_env.ts";
import { InstallError } from "../../core/install/install_documents.ts";

const WORDS_MAX = 600;

export interface Ran {
  readonly code: number;
  readonly said: string;
}

/** Throws `does_not_run` when it cannot be started or takes longer. */
export async function runCommand(
  argv: readonly string[],
  how: {
    readonly seconds: number;
    readonly signal: AbortSignal;
    readonly env?: Readonly<Record<string, string>>;
  },
): Promise<Ran> {
  const [program = "", ...args] = argv;
  const late = AbortSignal.timeout(how.seconds * 1_000);
  try {
    const { code, stdout, stderr } = await new Deno.Command(program, {
      args,
      clearEnv: true,
      env: { LC_ALL: "C", PATH: "/usr/local/bin:/usr/bin:/bin", ...how.env },
      stdin: "null",
      signal: AbortSignal.any([late, how.signal]),
    }).output();
    how.signal.throwIfAborted();
    const decoder = new TextDecoder();
    const said = `${decoder.decode(stdout)}\n${decoder.decode(stderr)}`.trim();
    if (late.aborted) throw new Error(`it did not end within ${how.seconds} s`);
    return { code, said };
  } catch (error) {
    how.signal.throwIfAborted();
    throw new InstallError("does_not_run", `Cannot run ${program}: ${errorText(error)}`, {
      cause: error,
    });
  }
}

/**
 * Runs a program that was just unpacked, through heddle-shim, as a working engine is asked for its
 * version too. Throws `does_not_run`.
 */
export async function probeCommand(
  argv: readonly string[],
  how: { readonly shim: string; readonly folder: string; readonly seconds: number },
): Promise<Ran> {
  const environment = `${how.folder}/.probe-${crypto.randomUUID()}`;
  await Deno.writeTextFile(environment, shellEnv({ PATH: "/usr/local/bin:/usr/bin:/bin" }));
  try {
    // Its group ends with it; the other end of its standard input says that somebody waits.
    const child = new Deno.Command(how.shim, {
      args: ["probe", environment, String(how.seconds), ...argv],
      clearEnv: true,
      stdin: "piped",
      stdout: "piped",
      stderr: "piped",
      detached: true,
    }).spawn();
    const { stdout } = await child.output();
    await child.stdin.close().catch(() => {});
    const output = new TextDecoder().decode(stdout);
    const [, said = output, code = ""] = /^([^]*?)\n#exit (\d*)\n?$/.exec(output) ?? [];
    if (code !== "") return { code: Number(code), said };
    throw new Error(`it did not end within ${how.seconds} s`);
  } catch (error) {
    throw new InstallError("does_not_run", `Cannot run ${argv[0]}: ${errorText(error)}`, {
      cause: error,
    });
  } finally {
    await Deno.remove(environment).catch(() => {});
  }
}

/** The end of what a program said, in one line. */
export function lastWords(said: string): string {
  return said.split("\n").map((line) => line.trim()).filter((line) => line !== "").slice(-3)
    .join(" | ").slice(-WORDS_MAX);
}
