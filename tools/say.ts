/** Words to the person who runs a tool; programs have a log instead. */

/** Writes one line to standard output. */
export function say(line: string): void {
  Deno.stdout.writeSync(new TextEncoder().encode(`${line}\n`));
}

/**
 * Runs a tool's work. An error becomes its message on standard error, without a stack, and exit
 * code 1: tools fail because of what they check, and the stack would say nothing about that.
 */
export async function runTool(work: () => Promise<void>): Promise<void> {
  try {
    await work();
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    Deno.stderr.writeSync(new TextEncoder().encode(`${message.trimEnd()}\n`));
    Deno.exitCode = 1;
  }
}
