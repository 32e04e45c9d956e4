/** What changed its state: as a list, and as lines that come one by one. */
import { stringify } from "yaml";
import { type FleetEvent, FleetEventSchema } from "@heddle/proto/gen/live";
import { fieldsOf, toRecord } from "../record.ts";
import { formatCsv, type Listing, type Output, visible } from "../table.ts";
import { formatTime } from "../time_text.ts";

export function eventListing(events: readonly FleetEvent[]): Listing<FleetEvent> {
  return {
    rows: events,
    empty: "Nothing has changed its state since control began to lead",
    record: (event) => toRecord(FleetEventSchema, event),
    fields: fieldsOf(FleetEventSchema),
    columns: [
      { title: "WHEN", cell: ({ atMs }) => formatTime(Number(atMs)) },
      { title: "WHAT", cell: ({ kind }) => kind },
      { title: "NAME", cell: ({ subject }) => subject },
      { title: "EVENT", cell: ({ text }) => text },
      { title: "WHAT TO DO", cell: ({ next }) => next },
    ],
  };
}

/** How wide the columns of lines that come one by one are: nobody knows what comes. */
const KIND_WIDTH = 7;
const NAME_WIDTH = 24;
const RED = "\x1b[31m";
const PLAIN = "\x1b[0m";

/** What comes before the first of events that come one by one. */
export function eventsBegin(output: Output): string {
  return output === "csv" ? formatCsv([], fieldsOf(FleetEventSchema)) : "";
}

/** One event as a line, with what to do below it on a terminal; or as machines want it. */
export function formatEvent(
  event: FleetEvent,
  { output, terminal, color }: { output: Output; terminal: boolean; color: boolean },
): string {
  if (output !== "table" && output !== "wide") return machineLine(event, output);
  const { kind, subject, text, bad, next } = event;
  const cells = [formatTime(Number(event.atMs)), visible(kind), visible(subject), visible(text)];
  if (!terminal) return `${[...cells, visible(next)].join("\t")}\n`;
  const [when = "", what = "", name = "", said = ""] = cells;
  const line = `${when}  ${what.padEnd(KIND_WIDTH)}  ${name.padEnd(NAME_WIDTH)}  ${said}`;
  const below = next === "" ? "" : `    → ${visible(next)}\n`;
  return `${bad && color ? `${RED}${line}${PLAIN}` : line}\n${below}`;
}

/** What all of them together are is one text of that form, for JSON one to a line. */
function machineLine(event: FleetEvent, output: "json" | "yaml" | "csv"): string {
  const record = toRecord(FleetEventSchema, event);
  if (output === "json") return `${JSON.stringify(record)}\n`;
  if (output === "yaml") return stringify([record]);
  return formatCsv([record], []).replace(/^[^\n]*\n/, "");
}
