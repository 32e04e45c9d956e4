/** What the fleet carries, as a table of models, and in words below it. */
import {
  type ModelCapacity,
  ModelCapacitySchema,
  type NodeGain,
  type ProfileCapacity,
} from "@heddle/proto/gen/capacity";
import { toRecord } from "../record.ts";
import { plural } from "../status/plural.ts";
import { type Listing, visible } from "../table.ts";
import { measuredHow, rateWords } from "./measurement_words.ts";

export function capacityListing(models: readonly ModelCapacity[]): Listing<ModelCapacity> {
  return {
    rows: models,
    empty: "The catalog has no models",
    record: (model) => toRecord(ModelCapacitySchema, model),
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

/** Nothing is known where nobody measured: a 0 would be a lie. */
function told({ profiles }: ModelCapacity, perSecond: number): string {
  return profiles.some(({ measured }) => measured !== undefined) ? rateWords(perSecond) : "?";
}

function gainWords({ gpus, hardwareClass, requestsPerSecond, detail }: NodeGain): string {
  const kind = gpus === 0 ? hardwareClass : `${gpus}× ${hardwareClass}`;
  return `${kind} +${
    requestsPerSecond === 0 && detail !== "" ? "?" : rateWords(requestsPerSecond)
  }`;
}

/** What a person wants to know of one model. */
function formatModel(capacity: ModelCapacity): string {
  const { model, shape, profiles, gains, bottleneck, bottleneckDetail } = capacity;
  const unknown = capacity.unmeasuredReplicas === 0
    ? ""
    : `, without ${plural(capacity.unmeasuredReplicas, "replica")} never measured`;
  const lines = [
    "",
    `${model}, requests of shape ${shape}: ${
      told(capacity, capacity.nowPerSecond)
    } a second now, ` +
    `${told(capacity, capacity.mostPerSecond)} with everything running that fits${unknown}`,
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
    : `${rateWords(measured.requestsPerSecond)}/s each (${measuredHow(measured)})`;
  const notes = row.notes.map((note) => `; ${note}`).join("");
  return `${profile} on ${hardwareClass}: ${count}${weights}; ${carries}${notes}`;
}

function gainSentence(
  { replicas, nodes, requestsPerSecond, gpus, hardwareClass, detail }: NodeGain,
) {
  const kind = gpus === 0 ? hardwareClass : `${gpus}× ${hardwareClass}`;
  const adds = replicas === 0
    ? "nothing that can be told"
    : nodes > 1
    ? `${rateWords(requestsPerSecond)} a second; ${nodes} of them hold ${
      plural(replicas, "replica")
    }`
    : `${rateWords(requestsPerSecond)} a second by ${plural(replicas, "replica")}`;
  return `${adds} (${kind})${detail === "" ? "" : `; ${detail}`}`;
}
