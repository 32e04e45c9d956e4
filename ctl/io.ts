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
  const shown = printsUtf8((name) => Deno.env.get(name)) ? (text: string) => text : toAscii;
  // What a pipe or a file gets is UTF-8 wherever it is read.
  const onScreen = (isScreen: boolean, text: string) => isScreen ? shown(text) : text;
  const errorTerminal = Deno.stderr.isTerminal();
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
    out: (text) => write(Deno.stdout, onScreen(terminal, text)),
    err: (text) => write(Deno.stderr, onScreen(errorTerminal, text)),
  };
}

/**
 * Whether a terminal with this environment shows UTF-8, by what decides for every other program: the
 * first of the three that is set. Where none is, as in many containers and services, nobody has said
 * that it does not, and today's terminals do.
 */
export function printsUtf8(variable: (name: string) => string | undefined): boolean {
  const locale = ["LC_ALL", "LC_CTYPE", "LANG"].map(variable).find((value) => value);
  return locale === undefined || /utf-?8/i.test(locale);
}

/** What Heddle itself writes beyond ASCII. One for one: columns and screens are laid out already. */
const IN_ASCII: ReadonlyMap<string, string> = new Map([
  ["→", ">"],
  ["×", "x"],
  // As ps and top show that something was cut off.
  ["…", "+"],
  ["–", "-"],
  ["—", "-"],
]);

/** Heddle's own signs in ASCII, of the same width; what others have named and said stays as it is. */
export function toAscii(text: string): string {
  return text.replace(/[→×…–—]/g, (sign) => IN_ASCII.get(sign) ?? sign);
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
