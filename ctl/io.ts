/** Where output goes, whether a person is looking, and asking that person. */
import { HeddleError } from "@heddle/proto/error";

export interface ScreenSize {
  readonly lines: number;
  readonly columns: number;
}

export interface Io {
  readonly terminal: boolean;
  /** False with NO_COLOR and whenever the output is not a terminal. */
  readonly color: boolean;
  /** How high and wide the screen is, in characters; undefined where that is not known. */
  readonly size?: () => ScreenSize | undefined;
  out(text: string): void;
  err(text: string): void;
}

/** The process's own standard output and error. `gone`: nobody reads the output any more. */
export function processIo(gone: () => void = () => {}): Io {
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
      if (stream === Deno.stdout) gone();
    }
  };
  return {
    terminal,
    color: terminal && (Deno.env.get("NO_COLOR") ?? "") === "" && Deno.env.get("TERM") !== "dumb",
    size: () => terminal ? screenSize() : undefined,
    out: (text) => write(Deno.stdout, text),
    err: (text) => write(Deno.stderr, text),
  };
}

/** A terminal that was closed, or that says 0 by 0, has none. */
function screenSize(): ScreenSize | undefined {
  try {
    const { rows: lines, columns } = Deno.consoleSize();
    return lines > 0 && columns > 0 ? { lines, columns } : undefined;
  } catch {
    return undefined;
  }
}

/** Says to a person what is waited for; nothing in a pipe. */
export function sayWait(io: Pick<Io, "terminal" | "err">, text: string): void {
  if (io.terminal) io.err(`${text}\n`);
}

/** Asks a yes-or-no question; anything but a yes is a no. Undefined where nobody can be asked. */
export type Ask = ((question: string) => Promise<boolean>) | undefined;

/** Longest answer that is read, in bytes. */
const ANSWER_BYTES = 64;

/** Asks on the terminal, when there is one to ask and to answer on. `signal` is a no. */
export function terminalAsk(io: Pick<Io, "err">, signal: AbortSignal): Ask {
  if (!Deno.stdin.isTerminal() || !Deno.stderr.isTerminal()) return undefined;
  return async (question) => {
    io.err(`${question} [y/N] `);
    const interrupted = new Promise<string>((resolve) => {
      signal.addEventListener("abort", () => resolve("\n"), { once: true });
    });
    const answer = await Promise.race([readAnswer(), interrupted]);
    if (answer === "\n") io.err("\n");
    return /^\s*y(es)?\s*$/i.test(answer);
  };
}

async function readAnswer(): Promise<string> {
  const buffer = new Uint8Array(ANSWER_BYTES);
  const size = await Deno.stdin.read(buffer);
  return new TextDecoder().decode(buffer.subarray(0, size ?? 0));
}

/** Goes on when the flags or a person say yes; throws `failed_precondition` otherwise. */
export async function confirm(
  context: { readonly ask: Ask },
  flags: { readonly yes: boolean },
  question: string,
): Promise<void> {
  if (flags.yes) return;
  if (context.ask === undefined) {
    throw new HeddleError(
      "failed_precondition",
      `Not done: ${question} There is nobody to ask; if that is what you want, say --yes`,
    );
  }
  if (!await context.ask(question)) {
    throw new HeddleError("failed_precondition", "Not done: it was not confirmed");
  }
}
