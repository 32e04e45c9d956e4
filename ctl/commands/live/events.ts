/** `ctl events`: what changed its state, and with -f what does from now on. */
import { setTimeout as delay } from "node:timers/promises";
import { buildCommand } from "@stricli/core";
import { errorText, HeddleError } from "@heddle/proto/error";
import { type FleetEvent, LiveService } from "@heddle/proto/gen/live";
import { CALL_TIMEOUT_MS } from "../../client.ts";
import {
  callService,
  type CtlContext,
  LIST_ALIASES,
  LIST_FLAGS,
  type ListFlags,
  outputOf,
} from "../../command.ts";
import { eventListing, eventsBegin, formatEvent } from "../../live/event_listing.ts";
import { writeListing } from "../../table.ts";
import { show } from "../../watch.ts";

/** Before a control that is away is asked again. */
const AGAIN_MS = 2_000;

interface EventFlags extends ListFlags {
  readonly follow: boolean;
  readonly bad: boolean;
}

export const events = buildCommand({
  docs: {
    brief: "What changed its state or went wrong, and what to do about it",
    fullDescription: "Control remembers the last 300 of them since it began to lead. " +
      "With --follow each comes as it happens, as a line of its own; " +
      "with -o json as a line of JSON, with -o yaml as an item of one list, with -o csv below the heads.",
  },
  parameters: {
    flags: {
      ...LIST_FLAGS,
      follow: { kind: "boolean", default: false, brief: "Go on until Ctrl-C" },
      bad: { kind: "boolean", default: false, brief: "Only those that are bad news" },
    },
    aliases: { ...LIST_ALIASES, f: "follow" },
  },
  async func(this: CtlContext, flags: EventFlags) {
    if (flags.follow && flags.watch) {
      throw new SyntaxError("--follow tells what is new and --watch draws all anew: leave one out");
    }
    if (flags.follow) return await follow(this, flags);
    await show(this, flags, async () => {
      const found: FleetEvent[] = [];
      await callService(this, { flags, service: LiveService }, async (client) => {
        const stream = client.watchEvents({}, { timeoutMs: CALL_TIMEOUT_MS });
        for await (const { events } of stream) found.push(...events);
      });
      const shown = found.filter(({ bad }) => bad || !flags.bad);
      return (io) => writeListing(io, eventListing(shown), outputOf(flags));
    });
  },
});

/** Control is away; or it led when this began, and another one does by now. */
function isPassing(error: unknown, source: string): error is HeddleError {
  if (!(error instanceof HeddleError)) return false;
  return error.code === "unavailable" || (error.code === "failed_precondition" && source !== "");
}

/** A control that restarts remembers nothing, and one that only was away goes on where it was. */
async function follow(ctl: CtlContext, flags: EventFlags): Promise<void> {
  let [after, source] = [0n, ""];
  const form = { output: outputOf(flags), terminal: ctl.io.terminal, color: ctl.io.color };
  ctl.io.out(eventsBegin(form.output));
  while (!ctl.signal.aborted) {
    try {
      await callService(ctl, { flags, service: LiveService }, async (client) => {
        const asked = { follow: true, after, source };
        for await (const answer of client.watchEvents(asked, { signal: ctl.signal })) {
          source = answer.source;
          for (const event of answer.events) {
            after = event.number;
            if (event.bad || !flags.bad) ctl.io.out(formatEvent(event, form));
          }
        }
      });
    } catch (error) {
      // Ctrl-C is how following ends.
      if (ctl.signal.aborted) return;
      if (!isPassing(error, source)) throw error;
      ctl.io.err(`${errorText(error)}\n`);
    }
    await delay(AGAIN_MS, undefined, { signal: ctl.signal }).catch(() => {});
  }
}
