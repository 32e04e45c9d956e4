/**
 * What passes between the agent and the program that fetches: one request, in the program's
 * environment, and lines of a report, on its standard output. And what lies beside fetched weights.
 */
import { z } from "zod";
import { WEIGHTS_REASONS } from "./failure.ts";

const want = {
  source: z.string(),
  include: z.array(z.string()).default([]),
  exclude: z.array(z.string()).default([]),
};

const requestSchema = z.object({
  verb: z.enum(["fetch", "remove", "inspect"]),
  ...want,
  /** Commit that the source was resolved to before; empty: resolve it. */
  version: z.string().default(""),
  /** Folder that belongs to Heddle's fetching alone. */
  into: z.string(),
  /** With `remove`: the name of a folder directly inside `into`. */
  folder: z.string().default(""),
  hub: z.string().default("https://huggingface.co"),
  /** File with the token for the hub. */
  token_file: z.string().optional(),
  /** PEM file of authorities that are trusted besides the usual. */
  ca_file: z.string().optional(),
  connections: z.number().int().min(1).max(64).default(8),
  bytes_per_second: z.number().positive().optional(),
  /** Room that must stay free on the disk. */
  reserve_bytes: z.number().min(0).default(0),
  /** Bytes that one request asks for. */
  chunk_bytes: z.number().int().min(1).default(32 * 1024 ** 2),
  /** A connection that brings less than a trickle for so long is given up. */
  stall_ms: z.number().positive().default(30_000),
  /** First wait before trying again; it doubles. */
  retry_ms: z.number().positive().default(1_000),
  /** Tries in a row that bring nothing. */
  tries: z.number().int().min(1).default(8),
});
export type FetchRequest = z.output<typeof requestSchema>;
export type FetchRequestInput = z.input<typeof requestSchema>;

/** Reads a request. Throws what zod throws: it is the agent's own making. */
export function decodeRequest(text: string): FetchRequest {
  return requestSchema.parse(JSON.parse(text));
}

export function encodeRequest(request: FetchRequestInput): string {
  return JSON.stringify(request);
}

const factsSchema = z.object({
  architecture: z.string(),
  layers: z.number(),
  heads: z.number(),
  kvHeads: z.number(),
  headDim: z.number(),
  contextMax: z.number(),
  dtype: z.string(),
  quantization: z.string(),
  kvBytesPerToken: z.number(),
  kvWindow: z.number(),
  kvWindowBytesPerToken: z.number(),
  kvReplicated: z.boolean(),
}).partial();

const reportSchema = z.discriminatedUnion("kind", [
  z.object({
    kind: z.literal("progress"),
    phase: z.enum(["listing", "waiting", "fetching", "verifying", "waiting_to_retry"]),
    version: z.string(),
    done_bytes: z.number(),
    total_bytes: z.number(),
    bytes_per_second: z.number().optional(),
    seconds_left: z.number().optional(),
    files: z.number(),
    files_done: z.number(),
    /** What it waits for, where it waits. */
    note: z.string(),
  }),
  z.object({
    kind: z.literal("done"),
    /** Name of the folder. */
    folder: z.string(),
    entry: z.string(),
    version: z.string(),
    total_bytes: z.number(),
    /** Received over the network by this run. */
    received_bytes: z.number(),
  }),
  z.object({ kind: z.literal("removed"), freed_bytes: z.number() }),
  z.object({
    kind: z.literal("inspected"),
    version: z.string(),
    total_bytes: z.number(),
    weight_bytes: z.number().optional(),
    files: z.number(),
    /** What an engine would be given of it; empty: all of it. */
    entry: z.string(),
    facts: factsSchema,
    /** What could not be told, and why; empty when all could. */
    note: z.string(),
  }),
  z.object({
    kind: z.literal("failed"),
    reason: z.enum(WEIGHTS_REASONS),
    message: z.string(),
  }),
]);
export type FetchReport = z.output<typeof reportSchema>;
export type ReportOf<K extends FetchReport["kind"]> = Extract<FetchReport, { kind: K }>;

/** One line. */
export function encodeReport(report: FetchReport): string {
  return `${JSON.stringify(report)}\n`;
}

/** The last line that is a report; lines that are none (a crash's words) are passed over. */
export function lastReport(text: string): FetchReport | undefined {
  for (const line of text.split("\n").reverse()) {
    if (!line.startsWith("{")) continue;
    try {
      const parsed = reportSchema.safeParse(JSON.parse(line));
      if (parsed.success) return parsed.data;
    } catch {
      // Cut short.
    }
  }
  return undefined;
}

const MANIFEST_VERSION = 1;

const manifestSchema = z.object({
  format: z.literal(MANIFEST_VERSION),
  ...want,
  /** The commit, or what stands for one. */
  version: z.string(),
  entry: z.string(),
  total_bytes: z.number(),
  files: z.array(z.object({ path: z.string(), size: z.number(), hash: z.string() })),
});
export type Manifest = z.output<typeof manifestSchema>;

export function encodeManifest(manifest: Omit<Manifest, "format">): string {
  return `${JSON.stringify({ format: MANIFEST_VERSION, ...manifest }, null, 1)}\n`;
}

/** Undefined when it is none that this version knows. */
export function decodeManifest(text: string): Manifest | undefined {
  try {
    return manifestSchema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}
