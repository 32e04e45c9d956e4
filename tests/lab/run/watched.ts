/** Runs a program and acts once it has said certain words: plays are cut short that way. */
import type { Finished } from "../command.ts";

export interface Watched {
  readonly env: Readonly<Record<string, string>>;
  readonly limitMs: number;
  /** What it has to print, somewhere in what it printed until then. */
  readonly words: RegExp;
  /** Called once. `kill` ends the program as a power cut of its machine would. */
  readonly then: (kill: () => void) => void | Promise<void>;
}

/** Throws when it ends, or takes too long, without having said the words. */
export async function watchCommand(
  [command = "", ...args]: readonly string[],
  { env, limitMs, words, then }: Watched,
): Promise<Finished> {
  const child = new Deno.Command(command, {
    args,
    env: { ...env },
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const kill = () => child.kill("SIGKILL");
  const timer = setTimeout(kill, limitMs);
  const errors = new Response(child.stderr).text();
  let stdout = "";
  let done: void | Promise<void> | undefined;
  let said = false;
  try {
    for await (const text of child.stdout.pipeThrough(new TextDecoderStream())) {
      stdout += text;
      if (said || !words.test(stdout)) continue;
      said = true;
      done = then(kill);
    }
    const { code } = await child.status;
    await done;
    const stderr = await errors;
    if (!said) throw new Error(`It never said ${words.source}\n${stdout}${stderr}`);
    return { code, stdout, stderr };
  } finally {
    clearTimeout(timer);
  }
}
