/** A state as a word with a colour; the word alone says it too. */
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

export function State({ state }: { readonly state: string }) {
  return <span class={`state ${toneOf(state)}`}>{state}</span>;
}

function toneOf(state: string): "good" | "busy" | "bad" | "quiet" {
  if (GOOD.includes(state)) return "good";
  if (BUSY.includes(state)) return "busy";
  return BAD.includes(state) ? "bad" : "quiet";
}
