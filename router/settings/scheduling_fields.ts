/** The keys of router.yaml that say how requests are admitted and where they go. */
import { z } from "zod";
import { duration, size } from "@heddle/common/duration";
import { BANDS } from "../core/admission/band.ts";
import { ROUTING_PROFILES, type RoutingProfile } from "../core/schedule/scorer.ts";
import { eachScorer } from "../core/schedule/scorers.ts";

const band = () => z.enum(BANDS);

function weights(profile: RoutingProfile) {
  return z.strictObject(
    eachScorer(({ likes, weights }) =>
      z.number().min(0).max(1_000).default(weights[profile]).describe(`What counts: ${likes}`)
    ),
  ).prefault({});
}

const [CHAT, BATCH, LONG_CONTEXT] = ROUTING_PROFILES;

export const schedulingSchema = z.strictObject({
  scrape_interval: duration().default("2s")
    .describe("How often engines are asked for their load; 0s: never"),
  profiles: z.strictObject({
    [CHAT]: weights(CHAT).describe("For conversations: the first token soon"),
    [BATCH]: weights(BATCH).describe("For work that nobody waits for: the fleet used evenly"),
    [LONG_CONTEXT]: weights(LONG_CONTEXT).describe("For long prompts: what is cached, then room"),
  }).prefault({}).describe("What counts in the choice of a replica, by routing profile"),
}).prefault({}).describe("Where requests go");

interface BandDefaults {
  readonly requests: number;
  readonly bytes: string;
  readonly wait: string;
  readonly promote: string;
}

function bandBounds(name: string, defaults: BandDefaults) {
  return z.strictObject({
    requests_max: z.int().positive().max(1_000_000).default(defaults.requests)
      .describe("Most requests that wait for room, for each model; more are refused with 429"),
    bytes_max: size().default(defaults.bytes)
      .describe("Most bytes of bodies that wait for room, for each model"),
    wait_max: duration().default(defaults.wait)
      .describe("Longest wait for room; then the request is refused with 429"),
    promote_after: duration().default(defaults.promote)
      .describe("After so long without any of the band let in, its first request goes before all"),
  }).prefault({}).describe(`Requests of band ${name}`);
}

export const admissionSchema = z.strictObject({
  band_default: band().default("silver")
    .describe("Band of requests where neither header, key nor model says one"),
  band_ceiling: band().default("platinum")
    .describe("Best band for callers whose key says none"),
  saturation: z.strictObject({
    kv_cache_usage: z.number().gt(0).max(1).default(0.95)
      .describe("Share of a KV cache in use at which a replica is full"),
    waiting: z.number().positive().max(10_000).default(8)
      .describe("Requests waiting inside an engine at which a replica is full"),
  }).prefault({}).describe("When replicas are full"),
  bands: z.strictObject({
    platinum: bandBounds("platinum", {
      requests: 1_000,
      bytes: "256MiB",
      wait: "30s",
      promote: "2s",
    }),
    gold: bandBounds("gold", { requests: 2_000, bytes: "256MiB", wait: "60s", promote: "10s" }),
    silver: bandBounds("silver", { requests: 5_000, bytes: "512MiB", wait: "2m", promote: "20s" }),
    bronze: bandBounds("bronze", { requests: 10_000, bytes: "1GiB", wait: "10m", promote: "60s" }),
  }).prefault({}).describe("What may wait for room, by band"),
  models: z.array(z.strictObject({
    name: z.string().min(1).max(256).describe("Name of a model, of this file or of the catalog"),
    band: band().optional().describe("Band of its requests where neither header nor key says one"),
    capacity: z.int().positive().max(100_000).optional()
      .describe("Requests in flight at which one replica is full; learnt when left out"),
  })).default([]).describe("What is particular to models"),
}).prefault({}).describe("Which requests are let in, in which order");
