/**
 * A case: what a client sends, what the engines answer, and what must come of it. Read strictly: a
 * key that the harness does not know would otherwise be a check that nobody makes.
 */
import { z } from "zod";

/** Which keys it may hold, `readLine` checks. */
const expectSchema = z.record(z.string(), z.unknown());

const headersSchema = z.record(z.string(), z.string());

const requestSchema = z.strictObject({
  method: z.string(),
  path: z.string().startsWith("/"),
  headers: headersSchema.default({}),
  /** A file beside cases.jsonl. */
  body_file: z.string().optional(),
  /** The body as JSON, instead of a file. */
  json: z.unknown().optional(),
  /** How the body is sent; one run for each. */
  transfer: z.array(z.enum(["content-length", "chunked"])).min(1).default(["content-length"]),
  /** One header line exactly as it is written, instead of the key that is added otherwise. */
  raw_header: z.string().optional(),
});

const upstreamSchema = z.strictObject({
  status: z.int().min(100).max(599).default(200),
  headers: headersSchema.default({}),
  file: z.string().optional(),
  body: z.unknown().optional(),
  generate: z.strictObject({ kind: z.literal("one-delta"), content_bytes: z.int().positive() })
    .optional(),
  /** Where the bytes are flushed. */
  cuts: z.union([
    z.enum(["none", "per-event", "every-byte", "mid-codepoint"]),
    z.array(z.union([z.int(), z.string()])),
  ]).default("none"),
  gap_ms: z.number().min(0).default(0),
  first_byte_delay_ms: z.number().min(0).default(0),
  encode: z.enum(["gzip"]).optional(),
  /** How much is sent before the end; 0 is not even a head. */
  bytes: z.int().min(0).optional(),
  end: z.enum(["close", "reset", "hang"]).default("close"),
});

const clientSchema = z.strictObject({
  disconnect_after_events: z.int().positive().optional(),
  disconnect_after_ms: z.number().positive().optional(),
});

const setupSchema = z.strictObject({
  key: z.strictObject({
    rpm: z.number(),
    tpm: z.number(),
    concurrency: z.number(),
    budget: z.number(),
    allowed: z.array(z.string()),
    allowed_paths: z.array(z.string()),
  }).partial().default({}),
  replica_slots: z.int().optional(),
  occupied: z.int().optional(),
  engine_context: z.int().optional(),
  models: z.record(
    z.string(),
    z.strictObject({ aliases: z.array(z.string()), fallbacks: z.array(z.string()) }).partial(),
  ).default({}),
});

/** One request with its engines and what must come of it. */
const partSchema = z.strictObject({
  request: requestSchema.optional(),
  upstream: z.array(upstreamSchema).optional(),
  client: clientSchema.optional(),
  expect: expectSchema.optional(),
});

export const caseSchema = partSchema.extend({
  id: z.string().min(1),
  title: z.string(),
  source: z.array(z.string()).default([]),
  files: z.array(z.string()).default([]),
  setup: setupSchema.prefault({}),
  variants: z.array(partSchema).optional(),
  /** Requests one after the other; in words where only a person can act them out. */
  steps: z.array(z.union([z.string(), partSchema])).optional(),
  /** One request many times at once. */
  sequence: z.strictObject({ parallel: z.int().positive(), request: requestSchema }).optional(),
});

export type Case = z.output<typeof caseSchema>;
export type CasePart = z.output<typeof partSchema>;
export type CaseRequest = z.output<typeof requestSchema>;
export type Upstream = z.output<typeof upstreamSchema>;
export type CaseClient = z.output<typeof clientSchema>;
export type Expect = Readonly<Record<string, unknown>>;
