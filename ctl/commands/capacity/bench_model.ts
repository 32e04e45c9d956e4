/** `ctl bench`: the highest load at which a model, or one replica of it, keeps what is promised. */
import { buildCommand } from "@stricli/core";
import { parseDurationMs } from "@heddle/common/duration";
import { CapacityService, MeasurementSchema } from "@heddle/proto/gen/capacity";
import { formatFound, formatLevel, HEAD } from "../../bench/report.ts";
import { type Found, search } from "../../bench/search.ts";
import type { Slo } from "../../bench/measured.ts";
import { SHAPES } from "../../bench/shape.ts";
import { shapeName, shapeNamed } from "../../bench/shape_named.ts";
import { type Subject, subjectOf } from "../../bench/subject.ts";
import { storedWords } from "../../capacity/measurement_words.ts";
import { CALL_TIMEOUT_MS } from "../../client.ts";
import {
  call,
  callService,
  COMMON_FLAGS,
  type CtlContext,
  FORM_ALIASES,
  FORM_FLAGS,
  type FormFlags,
  YES_FLAG,
} from "../../command.ts";
import { formatRecord, screenForm } from "../../live/screen.ts";
import { ENDPOINT_FLAGS, type EndpointFlags, endpointOf } from "../../endpoint.ts";
import type { Io } from "../../io.ts";
import { toRecord } from "../../record.ts";
import { applyWeights, fetchCapacity } from "./apply_weights.ts";

interface BenchFlags extends EndpointFlags, FormFlags {
  readonly profile?: string;
  readonly replica?: string;
  readonly shape: string;
  readonly ttft?: number;
  readonly tpot?: number;
  readonly seconds: number;
  readonly max: number;
  readonly seed: number;
  readonly ignoreEos: boolean;
  readonly store: boolean;
  readonly apply: boolean;
  readonly yes: boolean;
}

/** Promised where neither the command line nor the catalog says. */
const TTFT_MS = 1_000;
const TPOT_MS = 100;

const whole = (text: string): number => {
  const number = Number(text);
  if (!Number.isSafeInteger(number) || number < 1) throw new Error("a whole number above 0");
  return number;
};

const time = (text: string): number => {
  const ms = parseDurationMs(text);
  if (ms === undefined || ms === 0) throw new Error('a time such as "500ms" or "2s"');
  return ms;
};

const name = (brief: string) =>
  ({ kind: "parsed", parse: String, optional: true, placeholder: "name", brief }) as const;

const promised = (brief: string) =>
  ({ kind: "parsed", parse: time, optional: true, placeholder: "time", brief }) as const;

const number = (normal: string, brief: string) =>
  ({ kind: "parsed", parse: whole, default: normal, placeholder: "number", brief }) as const;

const flag = (normal: boolean, brief: string) =>
  ({ kind: "boolean", default: normal, brief }) as const;

const BENCH_FLAGS = {
  ...COMMON_FLAGS,
  ...ENDPOINT_FLAGS,
  ...YES_FLAG,
  profile: name("One replica of this profile, and no other"),
  replica: name("This replica, and no other"),
  shape: {
    kind: "parsed",
    parse: String,
    default: "chat",
    placeholder: "shape",
    brief: `${SHAPES.join(", ")}, or a file of JSON lines`,
  },
  ttft: promised("Promised time to the first token; by default what the catalog says, or 1s"),
  tpot: promised(
    "Promised time of each further token, on average over a request; by default what the catalog " +
      "says, or 100ms",
  ),
  seconds: number("10", "How long each load is measured; longer where requests take longer"),
  max: number("256", "Most requests at a time"),
  seed: number("1", "Other prompts for another number"),
  ignoreEos: flag(false, "Answers of the full length, for engines that know ignore_eos"),
  store: flag(true, "Have control store what was measured"),
  apply: flag(false, "Then set the weights of the model's profiles by what was measured"),
  ...FORM_FLAGS,
} as const;

export const bench = buildCommand({
  docs: {
    brief: "Measure the highest load at which a model keeps its promise",
    fullDescription:
      "Doubles the number of requests at a time until more of them break the promise than a larger " +
      "load gains, narrows down, and repeats the best until it is stable. Control stores what one " +
      "replica of the profile carries, marked where repeating it did not agree; capacity reckons with it. With --endpoint alone it measures any " +
      "server of the OpenAI API, and stores nothing. The same seed asks the same. It takes what " +
      "capacity there is: users feel it.",
  },
  parameters: {
    flags: BENCH_FLAGS,
    aliases: FORM_ALIASES,
    positional: {
      kind: "tuple",
      parameters: [{ brief: "Name or alias of the model", parse: String, placeholder: "model" }],
    },
  },
  async func(this: CtlContext, flags: BenchFlags, model: string) {
    const form = screenForm(flags);
    const { base, key } = await endpointOf(this, flags);
    const shape = await shapeNamed(flags.shape);
    const about = await aboutOf(this, flags, model);
    const slo = {
      ttftMs: flags.ttft ?? about?.ttftMs ?? TTFT_MS,
      tpotMs: flags.tpot ?? about?.tpotMs ?? TPOT_MS,
    };
    const progress: Io = form !== "table" ? { ...this.io, out: this.io.err } : this.io;
    if (about !== undefined) progress.out(`Measuring ${about.model}: ${about.subject.words}\n`);
    progress.out(`${HEAD}\n`);
    const found = await search({
      target: { base, model, key, ignoreEos: flags.ignoreEos, replica: about?.subject.only },
      shape,
      seed: flags.seed,
      slo,
      seconds: flags.seconds,
      concurrencyMax: flags.max,
      signal: this.signal,
      onLevel: (level) => progress.out(`${formatLevel(level)}\n`),
    });
    if (form === "table") this.io.out(formatFound(found, slo));
    const stored = await store(this, flags, { found, slo, subject: about?.subject });
    if (form !== "table") {
      const result = { model, shape: shape.name, slo, ...found, stored: recordOf(stored) };
      this.io.out(formatRecord(form, result));
    } else if (stored !== undefined) this.io.out(storedWords(stored));
    if (found.best === undefined) return this.fail();
    if (flags.apply && about !== undefined) {
      const asked = { model: about.model, shape: shapeName(flags.shape) };
      await applyWeights({ ...this, io: progress }, flags, asked);
    }
  },
});

interface About {
  /** By its name. */
  readonly model: string;
  readonly subject: Subject;
  readonly ttftMs: number | undefined;
  readonly tpotMs: number | undefined;
}

/** Undefined for a server that is named by its address alone, of which control knows nothing. */
async function aboutOf(
  ctl: CtlContext,
  flags: BenchFlags,
  model: string,
): Promise<About | undefined> {
  const { profile, replica, endpoint } = flags;
  if (endpoint !== undefined && profile === undefined && replica === undefined) return undefined;
  const { replicas } = await call(
    ctl,
    flags,
    (client) => client.listReplicas({ model }, { timeoutMs: CALL_TIMEOUT_MS }),
  );
  const [known] = await fetchCapacity(ctl, flags, { model, shape: shapeName(flags.shape) });
  return {
    model: known?.model ?? model,
    subject: subjectOf(replicas, { model, profile, replica }),
    ttftMs: known?.ttftMs,
    tpotMs: known?.tpotMs,
  };
}

/** Undefined when there is nothing to store. What is not stable is stored as that. */
async function store(
  ctl: CtlContext,
  flags: BenchFlags,
  { found: { best, stable, spread }, slo, subject }: {
    readonly found: Found;
    readonly slo: Slo;
    readonly subject: Subject | undefined;
  },
) {
  if (!flags.store || best === undefined || subject === undefined) return undefined;
  if (subject.replicaIds.length === 0) return undefined;
  return await callService(
    ctl,
    { flags, service: CapacityService },
    (client) =>
      client.recordMeasurement({
        replicaIds: [...subject.replicaIds],
        shape: shapeName(flags.shape),
        ...slo,
        requestsPerSecond: best.goodput,
        concurrency: best.concurrency,
        outputTokensPerSecond: best.completionTokensPerS,
        within: best.within,
        spread,
        unstable: !stable,
      }, { timeoutMs: CALL_TIMEOUT_MS }),
  );
}

function recordOf(stored: Awaited<ReturnType<typeof store>>) {
  const measurement = stored?.kept === true ? undefined : stored?.measurement;
  return measurement === undefined ? null : toRecord(MeasurementSchema, measurement);
}
