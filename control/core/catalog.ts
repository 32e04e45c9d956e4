/** The catalog: which models should run, and how. Its home is this schema; defaults live only here. */
import { z } from "zod";
import { parseConfig, type Parsed } from "@heddle/common/config_file";
import { duration, parseDurationMs, parseSizeBytes, size } from "@heddle/common/duration";
import { crossCheck } from "./catalog/catalog_rules.ts";
import { checkArgs } from "./catalog/owned_args.ts";
import { checkEnv } from "./catalog/owned_env.ts";
import { sourceProblem } from "./catalog/source.ts";

/** Names stand in URLs, unit names and metrics, so they are one word without surprises. */
const NAME = /^[A-Za-z0-9](?:[A-Za-z0-9._:/@+-]*[A-Za-z0-9])?$/;
const NAME_LENGTH_MAX = 200;

const name = () =>
  z.string().max(NAME_LENGTH_MAX).regex(NAME, {
    error: "want letters, digits and . _ : / @ + - between them",
  });
/** Numbers are what people write for numeric flags; engines get text either way. */
const text = () => z.union([z.string(), z.number(), z.boolean()]).transform((value) => `${value}`);
const parallel = (what: string) =>
  z.int().min(1).max(1_024).default(1).describe(`${what} parallel size; 1 is none`);

const glob = () => z.string().min(1).max(200);

const liveness = z.strictObject({
  token_timeout: duration().default("60s")
    .describe("How long an idle engine may take for the one token that it is asked for"),
  hung_after: duration().default("90s")
    .describe("Degraded once requests run and no work is done for so long"),
  fail_after: duration().default("11m")
    .describe("Ended once no work is done for so long; the engines' own watchdogs take up to 10m"),
});

const profileFields = z.strictObject({
  name: name().describe("Unique within the model"),
  engine: z.enum(["vllm", "sglang", "llamacpp", "sim"]).default("vllm").describe(
    "The program that serves the model",
  ),
  engine_version: z.string().default("").describe("Exactly this version; empty takes any"),
  gpu_class: z.string().min(1).optional().describe(
    'GPU class as nodes report it, e.g. "h100-80g"; absent for a profile that needs no GPU',
  ),
  tp: parallel("Tensor"),
  pp: parallel("Pipeline"),
  dp: parallel("Data"),
  nodes: z.int().min(1).max(1_024).default(1).describe("Nodes that one replica spans"),
  gpus_per_node: z.int().min(0).max(64).optional().describe(
    "GPUs on each node; the default is tp × pp × dp / nodes",
  ),
  launch_mode: z.enum(["mp", "ray"]).default("mp").describe(
    "How an engine on several nodes finds itself together",
  ),
  args: z.array(text()).default([]).describe("Passed to the engine after Heddle's own flags"),
  env: z.record(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/), text()).default({}).describe(
    "Environment of the engine, after what Heddle sets itself",
  ),
  unsafe_env: z.boolean().default(false).describe(
    "Allows env that can break fabric and GPU assignment; shown wherever the model is",
  ),
  weight: z.int().min(1).max(1_000).default(1).describe("Share of requests relative to others"),
  priority: z.int().min(-1_000).max(1_000).default(0).describe("Higher is tried first"),
  startup_timeout: duration().default("20m").describe("Longest time from start to ready"),
  liveness: liveness.prefault({}).describe(
    "When an engine that answers is taken for one that hangs",
  ),
  node_selector: z.record(z.string().min(1), z.string()).default({}).describe(
    "Labels that a node must have",
  ),
  memory: size().optional().describe("Host memory that a profile without GPUs needs"),
});

const profile = profileFields.superRefine((fields, context) => {
  checkSizes(fields, context);
  checkLimits(fields, context);
  checkArgs(fields.engine, fields.args, context);
  checkEnv(fields.env, fields.unsafe_env, context);
}).transform((fields) => ({ ...fields, gpus_per_node: gpusPerNode(fields) }));

const scaling = z.strictObject({
  min: z.int().min(0).max(10_000).default(1).describe("0 lets the model sleep"),
  max: z.int().min(1).max(10_000).optional().describe("The default is min, at least 1"),
  target: z.int().min(1).max(100_000).default(32)
    .describe("Requests in flight and waiting that one replica carries well; beyond it more start"),
}).superRefine(({ min, max }, context) => {
  if (max !== undefined && max < min) {
    context.addIssue({ code: "custom", path: ["max"], message: `max ${max} is below min ${min}` });
  }
}).transform(({ min, max, target }) => ({ min, max: max ?? Math.max(min, 1), target }));

const slo = z.strictObject({
  ttft_p99: duration().optional().describe("Time to the first token, 99th percentile"),
  tpot_p99: duration().optional().describe("Time per output token, 99th percentile"),
});

const model = z.strictObject({
  name: name().describe("What clients ask for"),
  aliases: z.array(name()).default([]).describe("Other names for it"),
  source: z.string().min(1).regex(/^\S(?:.*\S)?$/, { error: "must not begin or end with a blank" })
    .refine((text) => sourceProblem(text) === undefined, {
      error: (issue) => sourceProblem(`${issue.input}`) ?? "invalid value",
    })
    .describe(
      "Where the weights come from: an absolute path on the nodes, hf://ORG/NAME@REVISION/FILE, an " +
        "https:// address, or a name that engines know",
    ),
  source_include: z.array(glob()).default([])
    .describe("With some, only files of the source that one of these patterns matches are fetched"),
  source_exclude: z.array(glob()).default([])
    .describe("Files of the source that one of these patterns matches are not fetched"),
  fallbacks: z.array(name()).default([]).describe("Names or aliases to try when it cannot serve"),
  routing_profile: z.enum(["chat", "batch", "long-context"]).default("chat").describe(
    "How routers weigh endpoints for its requests",
  ),
  band: z.enum(["platinum", "gold", "silver", "bronze"]).optional().describe(
    "Band of its requests where neither header nor key says one; without it, what routers have for all",
  ),
  capacity: z.int().positive().max(100_000).optional().describe(
    "Requests in flight at which one replica is full; routers learn it when left out",
  ),
  scaling: scaling.default({ min: 1, max: 1, target: 32 }).describe("How many replicas there are"),
  slo: slo.default({}).describe("What its users are promised"),
  attach: z.array(name().or(z.literal("*"))).default([]).describe(
    'Deployments of which attached engines may serve it; "*" is any',
  ),
  profiles: z.array(profile).describe(
    "Ways to run it, at least one; none for a model that only attached engines serve",
  ),
}).superRefine(({ attach, scaling, profiles }, context) => {
  if (profiles.length > 0) return;
  const complain = (path: string, message: string) =>
    context.addIssue({ code: "custom", path: [path], message });
  if (attach.length === 0) complain("profiles", "want at least one profile, or attach");
  else if (scaling.min > 0) complain("scaling", "want min: 0: there is no profile to start one by");
});

/** The whole document. An empty one has no models. */
export const catalogSchema = z.strictObject({
  models: z.array(model).default([]).describe("What clients can ask for"),
}).superRefine((catalog, context) => crossCheck(catalog.models, context));

export type Catalog = z.output<typeof catalogSchema>;
export type Model = Catalog["models"][number];
export type Profile = Model["profiles"][number];
export type ProfileFields = z.output<typeof profileFields>;

export const EMPTY_CATALOG: Catalog = { models: [] };

/** Parses the text of a catalog; every complaint names `file`, line, column and path. */
export function parseCatalog(text: string, file: string): Parsed<Catalog> {
  return parseConfig(catalogSchema, text, file);
}

/** The model that clients mean by a name or an alias. */
export function findModel(catalog: Catalog, nameOrAlias: string): Model | undefined {
  return catalog.models.find((each) =>
    each.name === nameOrAlias || each.aliases.includes(nameOrAlias)
  );
}

/** Beyond any engine's start; the wire counts milliseconds in 32 bits. */
const STARTUP_DAYS_MAX = 7;
/** Beyond any machine; the wire counts bytes in 64 bits. */
const MEMORY_TIB_MAX = 1_024;

function checkLimits(fields: ProfileFields, context: z.RefinementCtx): void {
  const startupMs = parseDurationMs(fields.startup_timeout) ?? 0;
  if (startupMs < 1_000 || startupMs > STARTUP_DAYS_MAX * 86_400_000) {
    const message = `want 1s to ${STARTUP_DAYS_MAX}d, it is ${fields.startup_timeout}`;
    context.addIssue({ code: "custom", path: ["startup_timeout"], message });
  }
  checkLiveness(fields.liveness, context);
  if ((parseSizeBytes(fields.memory ?? "") ?? 0) > MEMORY_TIB_MAX * 2 ** 40) {
    const message = `want at most ${MEMORY_TIB_MAX}TiB, it is ${fields.memory}`;
    context.addIssue({ code: "custom", path: ["memory"], message });
  }
}

/** An agent looks at a busy engine every 15 s: what is shorter says nothing. */
const HUNG_SECONDS_MIN = 30;

function checkLiveness(fields: ProfileFields["liveness"], context: z.RefinementCtx): void {
  const ms = (text: string) => parseDurationMs(text) ?? 0;
  const complain = (key: string, message: string) =>
    context.addIssue({ code: "custom", path: ["liveness", key], message });
  const { token_timeout, hung_after, fail_after } = fields;
  if (ms(token_timeout) < 1_000 || ms(token_timeout) > 3_600_000) {
    complain("token_timeout", `want 1s to 1h, it is ${token_timeout}`);
  }
  if (ms(hung_after) < HUNG_SECONDS_MIN * 1_000 || ms(hung_after) > 86_400_000) {
    complain("hung_after", `want ${HUNG_SECONDS_MIN}s to 24h, it is ${hung_after}`);
  }
  if (ms(fail_after) <= ms(hung_after) || ms(fail_after) > STARTUP_DAYS_MAX * 86_400_000) {
    complain("fail_after", `want more than hung_after and at most 7d, it is ${fail_after}`);
  }
}

function gpusPerNode(fields: ProfileFields): number {
  if (fields.gpu_class === undefined) return 0;
  return fields.gpus_per_node ?? fields.tp * fields.pp * fields.dp / fields.nodes;
}

function checkSizes(fields: ProfileFields, context: z.RefinementCtx): void {
  const { tp, pp, dp, nodes } = fields;
  const complain = (path: string, message: string) =>
    context.addIssue({ code: "custom", path: [path], message });
  if (fields.gpu_class === undefined) {
    if (fields.gpus_per_node !== undefined && fields.gpus_per_node > 0) {
      complain("gpus_per_node", `${fields.gpus_per_node} GPUs, but no gpu_class says which`);
    }
    if (tp * pp * dp > 1) {
      complain("tp", `tp × pp × dp is ${tp * pp * dp}, but no gpu_class says on which GPUs`);
    }
    if (nodes > 1) complain("nodes", `${nodes} nodes: a profile without gpu_class runs on one`);
    return;
  }
  if (fields.memory !== undefined) {
    complain("memory", "is for profiles without GPUs; this one has a gpu_class");
  }
  const wanted = tp * pp * dp;
  if (fields.gpus_per_node === undefined) {
    if (wanted % nodes !== 0) {
      complain("nodes", `tp × pp × dp is ${wanted}, which ${nodes} nodes cannot share evenly`);
    }
  } else if (nodes * fields.gpus_per_node !== wanted) {
    complain(
      "gpus_per_node",
      `nodes × gpus_per_node is ${nodes * fields.gpus_per_node}, ` +
        `but tp × pp × dp is ${wanted} (${tp} × ${pp} × ${dp})`,
    );
  }
}
