/** The one object that knows where output goes and whether a person is looking. */

export interface Io {
  readonly terminal: boolean;
  /** False with NO_COLOR and whenever the output is not a terminal. */
  readonly color: boolean;
  out(text: string): void;
  err(text: string): void;
}

/** The process's own standard output and error. */
export function processIo(): Io {
  const terminal = Deno.stdout.isTerminal();
  const encoder = new TextEncoder();
  const write = (stream: { writeSync(bytes: Uint8Array): number }, text: string) => {
    try {
      for (let rest = encoder.encode(text); rest.length > 0;) {
        rest = rest.subarray(stream.writeSync(rest));
      }
    } catch (error) {
      // `ctl nodes | head` closes the pipe on purpose.
      if (!(error instanceof Deno.errors.BrokenPipe)) throw error;
    }
  };
  return {
    terminal,
    color: terminal && (Deno.env.get("NO_COLOR") ?? "") === "" && Deno.env.get("TERM") !== "dumb",
    out: (text) => write(Deno.stdout, text),
    err: (text) => write(Deno.stderr, text),
  };
}
