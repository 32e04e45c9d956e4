/** What the fleet carries, as a table of models, and in words below it. */
import {
  type ModelCapacity,
  ModelCapacitySchema,
  type NodeGain,
  type ProfileCapacity,
} from "@heddle/proto/gen/capacity";
import { fieldsOf, toRecord } from "../record.ts";
import { plural } from "../status/plural.ts";
import { type Listing, visible } from "../table.ts";
import { carriedWords, measuredHow, rateWords } from "./measurement_words.ts";

export function capacityListing(models: readonly ModelCapacity[]): Listing<ModelCapacity> {
  return {
    rows: models,
    empty: "The catalog has no models",
    record: (model) => toRecord(ModelCapacitySchema, model),
    fields: fieldsOf(ModelCapacitySchema),
    columns: [
      { title: "MODEL", cell: ({ model }) => model },
      { title: "SHAPE", cell: ({ shape }) => shape },
      { title: "NOW/S", cell: (model) => told(model, model.nowPerSecond) },
      { title: "AT MOST/S", cell: (model) => told(model, model.mostPerSecond) },
      { title: "HELD BY", cell: ({ bottleneck }) => bottleneck.replaceAll("_", " ") },
      { title: "ONE MORE NODE", cell: ({ gains }) => gains.map(gainWords).join(", ") },
      { title: "NEVER MEASURED", cell: ({ unmeasuredReplicas: n }) => `${n}`, wide: true },
      { title: "WHY", cell: ({ bottleneckDetail }) => bottleneckDetail, wide: true },
    ],
    footer: (all) => all.map(formatModel).join(""),
  };
}

/** Nothing is known where nobody measured: a 0 would be a lie. "~" is what did not repeat. */
function told({ profiles }: ModelCapacity, perSecond: number): string {
  const known = profiles.flatMap(({ measured }) => measured === undefined ? [] : [measured]);
  if (known.length === 0) return "?";
  const doubted = perSecond > 0 && known.some(({ unstable }) => unstable);
  return `${doubted ? "~" : ""}${rateWords(perSecond)}`;
}

function gainWords({ gpus, hardwareClass, requestsPerSecond, reason }: NodeGain): string {
  const kind = gpus === 0 ? hardwareClass : `${gpus}× ${hardwareClass}`;
  switch (reason) {
    case "":
      return `${kind} +${rateWords(requestsPerSecond)}`;
    case "no_room":
      return `${kind}: none fits`;
    case "not_measured":
      return `${kind}: not measured`;
    default:
      return `${kind}: unknown`;
  }
}

const NOBODY_MEASURED = "nobody has measured how many a second it carries";

/** "12.3 a second now, 18.4 with everything …", in words where a number would say nothing. */
function carriesWords(capacity: ModelCapacity): string {
  const { nowPerSecond, mostPerSecond, profiles } = capacity;
  if (!profiles.some(({ measured }) => measured !== undefined)) return NOBODY_MEASURED;
  const ready = profiles.some(({ readyReplicas }) => readyReplicas > 0);
  const now = nowPerSecond > 0
    ? `${told(capacity, nowPerSecond)} a second now`
    : ready
    ? "now an unknown number a second (what is ready was never measured)"
    : "none now (no replica is ready)";
  const most = mostPerSecond > 0
    ? `${told(capacity, mostPerSecond)} with everything running that fits`
    : "nothing that was measured could run";
  return `${now}, ${most}`;
}

/** What a person wants to know of one model. */
function formatModel(capacity: ModelCapacity): string {
  const { model, shape, profiles, gains, bottleneck, bottleneckDetail } = capacity;
  const carries = carriesWords(capacity);
  // Where nothing was, that is said already.
  const unknown = capacity.unmeasuredReplicas === 0 || carries === NOBODY_MEASURED
    ? ""
    : `, without ${plural(capacity.unmeasuredReplicas, "replica")} never measured`;
  const lines = [
    "",
    `${model}, requests of shape ${shape}: ${carries}${unknown}`,
    ...profiles.map((profile) => `  ${profileWords(capacity, profile)}`),
    `  Held by ${bottleneck.replaceAll("_", " ")}: ${bottleneckDetail}`,
    ...gains.map((gain) => `  One more node like ${gain.likeNode}: ${gainSentence(gain)}`),
    ...(capacity.incomplete ? ["  There is more to the fleet than was looked at"] : []),
  ];
  return lines.map((line) => line === "" ? "\n" : `${indented(line)}\n`).join("");
}

function indented(line: string): string {
  return line.startsWith("  ") ? `  ${visible(line)}` : visible(line);
}

function profileWords({ model, shape }: ModelCapacity, row: ProfileCapacity): string {
  const { profile, hardwareClass, weight, measuredWeight, measured } = row;
  const weights = weight === 0
    ? ""
    : measuredWeight === 0 || measuredWeight === weight
    ? `, weight ${weight}`
    : `, weight ${weight}, by measurement ${measuredWeight} (--apply sets it)`;
  const count = `${row.readyReplicas} ready, ${row.mostReplicas} at most`;
  const carries = measured === undefined
    ? `never measured for ${shape}: heddle bench ${model} --profile ${profile} --shape ${shape}`
    : `${carriedWords(measured)} each (${measuredHow(measured)})`;
  const notes = row.notes.map((note) => `; ${note}`).join("");
  return `${profile} on ${hardwareClass}: ${count}${weights}; ${carries}${notes}`;
}

function gainSentence(
  { replicas, nodes, requestsPerSecond, gpus, hardwareClass, detail, reason }: NodeGain,
) {
  const kind = gpus === 0 ? hardwareClass : `${gpus}× ${hardwareClass}`;
  const together = nodes > 1 ? `; ${nodes} of them hold ${plural(replicas, "replica")}` : "";
  const why = detail === "" ? "" : `; ${detail}`;
  switch (reason) {
    case "":
      return `${rateWords(requestsPerSecond)} a second${
        together === "" ? ` by ${plural(replicas, "replica")}` : together
      } (${kind})${why}`;
    case "no_room":
      return `nothing, no replica fits there (${kind})${why}`;
    case "not_measured":
      return `${plural(replicas, "replica")}${
        nodes > 1 ? ` on ${nodes} of them` : ""
      }, and nobody knows how much they carry (${kind})${why}`;
    default:
      return `nothing that can be told (${kind})${why}`;
  }
}
