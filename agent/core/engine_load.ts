/** Reads an engine's load out of its metrics. What is not there is unknown, never 0. */
import type { EngineLoad } from "./shard/event.ts";

/** Names of the metrics, first name that exists counts: engines rename theirs. */
export interface LoadNames {
  readonly running: readonly string[];
  readonly waiting: readonly string[];
  readonly kvUsage: readonly string[];
  /** Counters of work done, of which all that exist are added up. */
  readonly progress: readonly string[];
}

/** `text` is a Prometheus exposition. Data-parallel engines count apart: requests add up. */
export function engineLoad(text: string, names: LoadNames): EngineLoad {
  const samples = samplesOf(text, Object.values(names).flat());
  const running = total(firstOf(samples, names.running));
  const waiting = total(firstOf(samples, names.waiting));
  const usages = firstOf(samples, names.kvUsage);
  const work = names.progress.flatMap((name) => samples.get(name) ?? []);
  return {
    ...(running === undefined ? {} : { running }),
    ...(waiting === undefined ? {} : { waiting }),
    ...(work.length === 0 ? {} : { progress: work.reduce((sum, value) => sum + value, 0) }),
    ...(usages === undefined ? {} : { kvUsage: Math.min(1, Math.max(0, ...usages)) }),
  };
}

const SAMPLE = /^([A-Za-z_:][\w:]*)(?:\{.*\})?\s+(\S+)/;

function samplesOf(text: string, wanted: readonly string[]): ReadonlyMap<string, number[]> {
  const found = new Map<string, number[]>();
  for (const line of text.split("\n")) {
    const [, name = "", value = ""] = SAMPLE.exec(line) ?? [];
    if (!wanted.includes(name)) continue;
    const number = Number(value);
    if (Number.isFinite(number)) found.set(name, [...found.get(name) ?? [], number]);
  }
  return found;
}

function firstOf(
  samples: ReadonlyMap<string, number[]>,
  names: readonly string[],
): readonly number[] | undefined {
  const name = names.find((each) => samples.has(each));
  return name === undefined ? undefined : samples.get(name);
}

function total(values: readonly number[] | undefined): number | undefined {
  return values === undefined
    ? undefined
    : Math.max(0, Math.round(values.reduce((sum, value) => sum + value, 0)));
}
