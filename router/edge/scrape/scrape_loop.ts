/**
 * Asks every engine for its load, again and again. Nothing here may cost a request: each question
 * has a deadline, few are asked at a time, and an engine that has no metrics is asked rarely.
 */
import { delay } from "@heddle/common/task";
import { logger } from "@heddle/common/log";
import type { Origin } from "../../core/fleet/endpoint.ts";
import { type EngineSample, readEngineSample } from "../../core/load/engine_sample.ts";
import { readWhole } from "../relay/read_whole.ts";
import type { UpstreamPool } from "../upstream.ts";

/** An engine, and the replicas that it is: a server of several models is several. */
export interface ScrapeTarget {
  readonly origin: Origin;
  /** Empty when it wants none. */
  readonly apiKey: string;
  readonly replicaIds: readonly string[];
}

export interface ScrapeOptions {
  readonly intervalMs: number;
  readonly pool: UpstreamPool;
  readonly targets: () => readonly ScrapeTarget[];
  readonly observe: (replicaId: string, sample: EngineSample) => void;
  /** A round is over: something may have changed. */
  readonly onRound: () => void;
}

/** An answer that is late says nothing of the present. */
const DEADLINE_MS_MAX = 1_000;
/** Some hundred histograms of a data-parallel engine have room in it. */
const BYTES_MAX = 8 * 2 ** 20;
/** Reading an answer takes the time of a request: a thousand at once would hold up all others. */
const AT_ONCE_MAX = 16;
/**
 * After so many failures in a row an engine that never answered is taken to have no metrics, and
 * asked rarely. One that did answer is only late, as everything is on a machine that is overloaded.
 */
const FAILURES_MAX = 3;
const RARELY_MS = 30_000;

interface Silence {
  failures: number;
  askAt: number;
}

/** Engines by address: how those that never answered have been silent, and those that did answer. */
interface Heard {
  readonly silences: Map<string, Silence>;
  readonly speak: Set<string>;
}

/** Asks until `stop` aborts. */
export async function scrapeLoop(options: ScrapeOptions, stop: AbortSignal): Promise<void> {
  const heard: Heard = { silences: new Map(), speak: new Set() };
  while (!stop.aborted) {
    const startedAt = performance.now();
    await round(options, heard, stop);
    if (stop.aborted) return;
    options.onRound();
    await delay(Math.max(0, options.intervalMs - (performance.now() - startedAt)), stop);
  }
}

async function round(
  options: ScrapeOptions,
  { silences, speak }: Heard,
  stop: AbortSignal,
): Promise<void> {
  const now = performance.now();
  const targets = options.targets();
  const known = new Set(targets.map(keyOf));
  for (const key of silences.keys()) if (!known.has(key)) silences.delete(key);
  for (const key of speak) if (!known.has(key)) speak.delete(key);
  const due = targets.filter((target) => (silences.get(keyOf(target))?.askAt ?? 0) <= now);
  let next = 0;
  const ask = async (): Promise<void> => {
    while (!stop.aborted) {
      const target = due[next++];
      if (target === undefined) return;
      const sample = await sampleOf(target, options, stop);
      if (sample === undefined) {
        if (!speak.has(keyOf(target))) failed(target, silences);
        continue;
      }
      silences.delete(keyOf(target));
      speak.add(keyOf(target));
      for (const replicaId of target.replicaIds) options.observe(replicaId, sample);
    }
  };
  await Promise.all(Array.from({ length: Math.min(AT_ONCE_MAX, due.length) }, ask));
}

/** Undefined when the engine does not answer, in time and well, or says nothing of its load. */
async function sampleOf(
  { origin, apiKey }: ScrapeTarget,
  { pool, intervalMs }: ScrapeOptions,
  stop: AbortSignal,
): Promise<EngineSample | undefined> {
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), Math.min(DEADLINE_MS_MAX, intervalMs));
  try {
    const answer = await pool.request({
      host: origin.host,
      port: origin.port,
      ...(origin.secure ? { tls: {} } : {}),
    }, {
      method: "GET",
      path: `${origin.basePath}/metrics`,
      headers: {
        accept: "text/plain",
        "accept-encoding": "identity",
        ...(apiKey === "" ? {} : { authorization: `Bearer ${apiKey}` }),
      },
      body: new Uint8Array(),
    }, AbortSignal.any([late.signal, stop]));
    const { bytes, whole } = await readWhole(answer, BYTES_MAX);
    if (answer.status !== 200 || !whole) return undefined;
    return readEngineSample(new TextDecoder().decode(bytes));
  } catch (error) {
    // Whatever it is, the next round asks again; requests have breakers of their own.
    logger("router", "scrape").debug("An engine did not say its load", { error });
    return undefined;
  } finally {
    clearTimeout(timer);
  }
}

function failed(target: ScrapeTarget, silences: Map<string, Silence>): void {
  const failures = (silences.get(keyOf(target))?.failures ?? 0) + 1;
  const askAt = failures >= FAILURES_MAX ? performance.now() + RARELY_MS : 0;
  silences.set(keyOf(target), { failures, askAt });
}

function keyOf({ origin }: ScrapeTarget): string {
  return `${origin.secure ? "https" : "http"} ${origin.host} ${origin.port}${origin.basePath}`;
}
