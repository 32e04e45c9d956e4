/** Shows something once, or with --watch again and again until Ctrl-C. */
import { setTimeout as delay } from "node:timers/promises";
import { errorText, HeddleError } from "@heddle/proto/error";
import type { Io, ScreenSize } from "./io.ts";

const INTERVAL_MS = 2_000;
/** Cursor to the top left, then everything below it cleared: no flicker as with clearing first. */
const HOME = "\x1b[H";
const CLEAR_BELOW = "\x1b[J";
const CLEAR_TO_END_OF_LINE = "\x1b[K";
const CLEAR_ALL = "\x1b[2J";

/** Writes what was fetched. */
export type Write = (io: Io) => void;

/**
 * `fetch` says what to write. With `watch`, a control that does not answer is said in place and
 * asked again: it may be restarting.
 */
export async function show(
  context: { readonly io: Io; readonly signal: AbortSignal },
  flags: { readonly watch: boolean },
  fetch: () => Promise<Write>,
): Promise<void> {
  const { io, signal } = context;
  if (!flags.watch) {
    (await fetch())(io);
    return;
  }
  if (io.terminal) io.out(CLEAR_ALL);
  while (!signal.aborted) {
    redraw(io, await drawn(io, fetch));
    try {
      await delay(INTERVAL_MS, undefined, { signal });
    } catch {
      return;
    }
  }
}

async function drawn(io: Io, fetch: () => Promise<Write>): Promise<string> {
  let text = "";
  const out = (more: string) => {
    text += more;
  };
  try {
    (await fetch())({ ...io, out });
  } catch (error) {
    if (!(error instanceof HeddleError) || error.code !== "unavailable") throw error;
    out(`${errorText(error)}\n`);
  }
  return text;
}

/**
 * What fits on the screen with the cursor below it, and how many lines do not: more would scroll, and
 * what is drawn next would begin in the middle of what was.
 */
export function fitted(text: string, size: ScreenSize | undefined): string {
  if (size === undefined) return text;
  const lines = text.split("\n").slice(0, -1);
  const rows = (line: string) => Math.max(1, Math.ceil(shownLength(line) / size.columns));
  const room = size.lines - 1;
  const all = lines.reduce((sum, line) => sum + rows(line), 0);
  if (all <= room) return text;
  let [kept, used] = [0, 1];
  for (const line of lines) {
    if (used + rows(line) > room) break;
    used += rows(line);
    kept++;
  }
  const left = `… ${lines.length - kept} more lines; without --watch they are all there`;
  return [...lines.slice(0, kept), left.slice(0, size.columns)].map((line) => `${line}\n`).join("");
}

/** Without what only sets colours. */
function shownLength(line: string): number {
  // deno-lint-ignore no-control-regex
  return [...line.replace(/\u001b\[[\d;]*m/g, "")].length;
}

/** A pipe gets one picture after the other, with an empty line between them. */
function redraw(io: Io, text: string): void {
  if (!io.terminal) io.out(`${text}\n`);
  else {io.out(
      `${HOME}${
        fitted(text, io.size?.()).replaceAll("\n", `${CLEAR_TO_END_OF_LINE}\n`)
      }${CLEAR_BELOW}`,
    );}
}
