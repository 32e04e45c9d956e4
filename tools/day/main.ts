/**
 * `deno task day`: a day of requests against a simulated fleet whose replicas control scales, and
 * against as few and as many as it may have, fixed. Writes the picture of docs/operating/sizing.md and
 * says the figures. Same seed, same day.
 *
 *   --seed 1  --peak 80  --hours 24  --picture docs/images/day.svg
 */
import { parseArgs } from "node:util";
import { ROOT } from "../repository.ts";
import { runTool, say } from "../say.ts";
import { type Line, type Panel, plot } from "./plot.ts";
import { HOURS, replay, type Replayed, SLO } from "./replay.ts";

const SCALING = { min: 2, max: 14, target: 32 };

/** What is drawn as one point of what came too late, in minutes. */
const MISSED_MINUTES = 10;

const FLEETS = [
  { style: "scaled", label: `scaled, ${SCALING.min} to ${SCALING.max}`, scaling: SCALING },
  {
    style: "least",
    label: `always ${SCALING.min}`,
    scaling: { ...SCALING, max: SCALING.min },
  },
  {
    style: "most",
    label: `always ${SCALING.max}`,
    scaling: { ...SCALING, min: SCALING.max },
  },
] as const;

type Fleet = (typeof FLEETS)[number] & { readonly replayed: Replayed };

async function main(): Promise<void> {
  const { values } = parseArgs({
    args: Deno.args,
    options: {
      seed: { type: "string", default: "1" },
      peak: { type: "string", default: "80" },
      hours: { type: "string", default: String(HOURS) },
      picture: { type: "string", default: "docs/images/day.svg" },
    },
  });
  const day = {
    seed: Number(values.seed),
    peakPerS: Number(values.peak),
    hours: Number(values.hours),
  };
  say(`Promise: first token within ${SLO.ttftMs} ms, ${SLO.tpotMs} ms a token after it`);
  say("");
  say("| replicas | requests | late or refused | of them refused | GPU-hours | changes |");
  say("| --- | ---: | ---: | ---: | ---: | ---: |");
  const fleets = FLEETS.map((fleet): Fleet => {
    const replayed = replay({ ...day, scaling: fleet.scaling });
    say(rowOf(fleet.label, replayed));
    return { ...fleet, replayed };
  });
  await Deno.writeTextFile(`${ROOT}/${values.picture}`, plot(panelsOf(fleets)));
  say("");
  say(`Drawn in ${values.picture}`);
}

function rowOf(label: string, { requests, late, refused, gpuHours, changes }: Replayed): string {
  const percent = (count: number) => `${(100 * count / requests).toFixed(2)} %`;
  const cells = [
    label,
    requests.toLocaleString("en"),
    percent(late + refused),
    percent(refused),
    gpuHours.toFixed(0),
    String(changes),
  ];
  return `| ${cells.join(" | ")} |`;
}

function panelsOf(fleets: readonly Fleet[]): readonly Panel[] {
  const line = ({ style, label, replayed }: Fleet, of: (replayed: Replayed) => Line["points"]) => ({
    style,
    label,
    points: of(replayed),
  });
  const asked = fleets[0]?.replayed.samples ?? [];
  const most = Math.max(0, ...asked.map(({ requestsPerS }) => requestsPerS));
  return [
    {
      title: "Requests a second",
      top: Math.ceil(most / 20) * 20,
      unit: (value) => value.toFixed(0),
      lines: [{
        style: "asked",
        label: "asked",
        points: asked.map(({ atS, requestsPerS }) => [atS, requestsPerS]),
      }],
    },
    {
      title: "Replicas ready",
      top: SCALING.max + 2,
      unit: (value) => value.toFixed(0),
      lines: fleets.map((fleet) =>
        line(fleet, ({ samples }) => samples.map(({ atS, ready }) => [atS, ready]))
      ),
    },
    {
      title: "Late or refused",
      top: 1,
      unit: (value) => `${(100 * value).toFixed(0)} %`,
      lines: fleets.map((fleet) => line(fleet, missedBy)),
    },
  ];
}

/** The mean of some minutes: one bad minute is a dot that nobody sees. */
function missedBy({ samples }: Replayed): Line["points"] {
  const points: (readonly [number, number])[] = [];
  for (let from = 0; from < samples.length; from += MISSED_MINUTES) {
    const some = samples.slice(from, from + MISSED_MINUTES);
    const mean = some.reduce((sum, { missed }) => sum + missed, 0) / some.length;
    points.push([some.at(-1)?.atS ?? 0, mean]);
  }
  return points;
}

if (import.meta.main) await runTool(main);
