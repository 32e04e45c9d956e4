/**
 * `deno task day`: a day of requests against a simulated fleet whose replicas control scales, and
 * against as few and as many as it may have, fixed. Draws a picture and says the figures. The day is
 * made from a seed, or was recorded. Same day, same figures.
 *
 *   --seed 1  --peak 80  --hours 24  --picture docs/images/day.svg  --min 2  --max 14  --target 32
 *   --recorded FILE  a backup of control's store, or JSON lines; --model NAME of it alone;
 *                    --stretch N: it was recorded N times faster than the day it stands for
 */
import { resolve } from "node:path";
import { parseArgs } from "node:util";
import { ROOT } from "../repository.ts";
import { runTool, say } from "../say.ts";
import { type Line, type Panel, plot } from "./plot.ts";
import { HeddleError } from "@heddle/proto/error";
import { isBackup, recordsOfBackup } from "./backup_records.ts";
import { GPUS_MAX } from "./fleet.ts";
import { parseRecorded, recordedTrace } from "./recorded.ts";
import { HOURS, replay, type Replayed, type Scaling, SLO } from "./replay.ts";
import { type Trace, traceOf } from "./trace.ts";

/** What is drawn as one point of what came too late, in minutes. */
const MISSED_MINUTES = 10;

const fleetsOf = (scaling: Scaling) =>
  [
    { style: "scaled", label: `scaled, ${scaling.min} to ${scaling.max}`, scaling },
    { style: "least", label: `always ${scaling.min}`, scaling: { ...scaling, max: scaling.min } },
    { style: "most", label: `always ${scaling.max}`, scaling: { ...scaling, min: scaling.max } },
  ] as const;

type Fleet = ReturnType<typeof fleetsOf>[number] & { readonly replayed: Replayed };

interface Day {
  /** Anew for each replay: a trace is asked in order, once. */
  readonly trace: () => Trace;
  readonly hours: number;
  readonly picture: string;
}

const OPTIONS = {
  seed: { type: "string", default: "1" },
  peak: { type: "string", default: "80" },
  hours: { type: "string", default: String(HOURS) },
  picture: { type: "string" },
  recorded: { type: "string" },
  model: { type: "string", default: "" },
  stretch: { type: "string", default: "1" },
  min: { type: "string", default: "2" },
  max: { type: "string", default: "14" },
  target: { type: "string", default: "32" },
} as const;

async function main(): Promise<void> {
  const { values } = parseArgs({ args: Deno.args, options: OPTIONS });
  const scaling = {
    min: within("min", values.min, { least: 1, most: GPUS_MAX }),
    max: within("max", values.max, { least: 1, most: GPUS_MAX }),
    target: within("target", values.target, { least: 1, most: 10_000 }),
  };
  if (scaling.min > scaling.max) throw new HeddleError("invalid_input", "--min is above --max");
  const { trace, hours, picture } = await dayOf(values);
  say(`Promise: first token within ${SLO.ttftMs} ms, ${SLO.tpotMs} ms a token after it`);
  say("");
  say("| replicas | requests | late or refused | of them refused | GPU-hours | changes |");
  say("| --- | ---: | ---: | ---: | ---: | ---: |");
  const fleets = fleetsOf(scaling).map((fleet): Fleet => {
    const replayed = replay({ trace: trace(), hours, scaling: fleet.scaling });
    say(rowOf(fleet.label, replayed));
    return { ...fleet, replayed };
  });
  await Deno.writeTextFile(resolve(ROOT, picture), plot(panelsOf(fleets, scaling)));
  say("");
  say(`Drawn in ${picture}`);
}

type Values = ReturnType<typeof parseArgs<{ options: typeof OPTIONS }>>["values"];

async function dayOf(values: Values): Promise<Day> {
  const seed = within("seed", values.seed, { least: 0, most: 2 ** 32 });
  const hours = within("hours", values.hours, { least: 1, most: HOURS });
  if (values.recorded === undefined) {
    const peak = within("peak", values.peak, { least: 1, most: 1_000 });
    const picture = values.picture ?? "docs/images/day.svg";
    return { trace: () => traceOf(seed, peak), hours, picture };
  }
  const file = resolve(values.recorded);
  const bytes = await Deno.readFile(file);
  const arrivals = isBackup(bytes)
    ? recordsOfBackup(file)
    : parseRecorded(new TextDecoder().decode(bytes));
  const stretch = within("stretch", values.stretch, { least: 1, most: 10_000 });
  const recorded = recordedTrace({ arrivals, model: values.model, stretch, seed }, hours);
  const sort = isBackup(bytes) ? "a backup of control's store" : "JSON lines";
  say(
    `Recorded in ${values.recorded}, ${sort}: ${recorded.requests.toLocaleString("en")} requests ` +
      `in ${recorded.hours.toFixed(1)} hours${
        stretch === 1 ? "" : `, each of the recording ${stretch} times`
      }`,
  );
  const picture = values.picture ?? "docs/images/recorded_day.svg";
  return { trace: () => recorded.trace, hours: recorded.hours, picture };
}

/** Throws `invalid_input`. */
function within(
  name: string,
  text: string,
  { least, most }: { readonly least: number; readonly most: number },
): number {
  const value = Number(text);
  if (Number.isInteger(value) && value >= least && value <= most) return value;
  throw new HeddleError(
    "invalid_input",
    `--${name} wants a whole number from ${least} to ${most}, it is "${text}"`,
  );
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

function panelsOf(fleets: readonly Fleet[], { max }: Scaling): readonly Panel[] {
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
      top: max + 2,
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
