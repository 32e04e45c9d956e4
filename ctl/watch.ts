/** Shows something once, or with --watch again and again until Ctrl-C. */
import { setTimeout as delay } from "node:timers/promises";
import { errorText, HeddleError } from "@heddle/proto/error";
import type { Io } from "./io.ts";

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

/** A pipe gets one picture after the other, with an empty line between them. */
function redraw(io: Io, text: string): void {
  if (!io.terminal) io.out(`${text}\n`);
  else io.out(`${HOME}${text.replaceAll("\n", `${CLEAR_TO_END_OF_LINE}\n`)}${CLEAR_BELOW}`);
}
