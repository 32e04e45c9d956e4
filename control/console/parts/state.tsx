/** A state as a word with a colour; the word alone says it too. */
import type { AttachedItem } from "../../edge/console/wire.ts";

const GOOD = ["ready", "reporting"];
const BUSY = [
  "placing",
  "starting",
  "preparing",
  "loading",
  "draining",
  "stopping",
  "cordoned",
  "suspected",
];
const BAD = ["failed", "lost", "unreachable", "degraded"];

/** Of what something else started; what state it is in stands beside it. */
export function Attached({ attached }: { readonly attached: AttachedItem | undefined }) {
  if (attached === undefined) return null;
  return (
    <span class="state quiet" title="Something else started it: Heddle neither stops nor moves it">
      attached
    </span>
  );
}

export function State({ state }: { readonly state: string }) {
  return <span class={`state ${toneOf(state)}`}>{state}</span>;
}

function toneOf(state: string): "good" | "busy" | "bad" | "quiet" {
  if (GOOD.includes(state)) return "good";
  if (BUSY.includes(state)) return "busy";
  return BAD.includes(state) ? "bad" : "quiet";
}
