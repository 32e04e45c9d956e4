/**
 * A day that was recorded: when requests arrived and how long they were, from a backup of control's
 * store or from JSON lines. Heddle's own record of a request has no text in it, and neither has this.
 */
import { z } from "zod";
import { HeddleError } from "@heddle/proto/error";
import { type Random, randomOf } from "../../control/core/testing/random.ts";
import type { Arrival, Trace } from "./trace.ts";

export interface RecordedArrival extends Arrival {
  /** Milliseconds since 1970. */
  readonly atMs: number;
  readonly model: string;
}

/** Longest prompt and answer that are believed. */
const TOKENS_MAX = 10_000_000;

const tokens = z.number().int().min(0).max(TOKENS_MAX);
const lineSchema = z.object({
  /** ISO 8601, or milliseconds since 1970. */
  at: z.union([z.iso.datetime({ offset: true }), z.number().min(0).max(8.64e15)]),
  model: z.string().default(""),
  prompt_tokens: tokens,
  completion_tokens: tokens,
});

/** Throws `invalid_input` with the line's number. */
export function parseRecorded(text: string): readonly RecordedArrival[] {
  return text.split("\n").flatMap((line, index) => {
    if (line.trim() === "") return [];
    const parsed = lineSchema.safeParse(jsonOf(line));
    if (!parsed.success) throw unreadable(index + 1, parsed.error.issues[0]);
    const { at, model, prompt_tokens, completion_tokens } = parsed.data;
    const atMs = typeof at === "number" ? at : Date.parse(at);
    return [{ atMs, model, promptTokens: prompt_tokens, outputTokens: completion_tokens }];
  });
}

function jsonOf(line: string): unknown {
  try {
    return JSON.parse(line);
  } catch {
    return undefined;
  }
}

function unreadable(line: number, issue: z.core.$ZodIssue | undefined): HeddleError {
  const where = issue === undefined || issue.path.length === 0 ? "" : ` ${issue.path.join(".")}:`;
  return new HeddleError(
    "invalid_input",
    `Cannot read line ${line} of the recording:${where} ${
      issue?.message ?? "it is no JSON"
    }. Want ` +
      '{"at": "2026-11-30T08:00:00Z", "model": "m", "prompt_tokens": 700, "completion_tokens": 120}',
  );
}

export interface RecordedDay {
  readonly arrivals: readonly RecordedArrival[];
  /** Of this model alone; empty for all. */
  readonly model: string;
  /**
   * How many times faster than the day it stands for it was recorded, with the rates of that day:
   * each request then stands for so many, spread over the time that its own moment stands for.
   */
  readonly stretch: number;
  readonly seed: number;
}

export interface RecordedTrace {
  readonly trace: Trace;
  /** Of what is replayed. */
  readonly hours: number;
  readonly requests: number;
}

/** The rate of a second is that of the minute that it is in. */
const RATE_S = 60;

/** The last 24 hours of the recording, begun at its first request. Throws `invalid_input` when empty. */
export function recordedTrace(
  { arrivals, model, stretch, seed }: RecordedDay,
  hoursMax: number,
): RecordedTrace {
  const own = arrivals.filter((each) => model === "" || each.model === model)
    .toSorted((a, b) => a.atMs - b.atMs);
  const last = own.at(-1)?.atMs;
  if (last === undefined) throw nothing(arrivals, model);
  const kept = own.filter(({ atMs }) => atMs > last - hoursMax * 3_600_000 / stretch);
  const first = kept[0]?.atMs ?? last;
  const bySecond = spread(kept, { first, stretch, random: randomOf(seed) });
  const seconds = Math.max(RATE_S, ...bySecond.keys()) + 1;
  const at = (second: number) => bySecond.get(second < 0 ? wrapped(second, seconds) : second) ?? [];
  return {
    requests: kept.length * stretch,
    hours: seconds / 3_600,
    trace: {
      rate(second) {
        const from = Math.floor(second / RATE_S) * RATE_S;
        let count = 0;
        for (let each = from; each < from + RATE_S; each++) count += at(each).length;
        return count / RATE_S;
      },
      arrivals(second, length) {
        return inPart(at(Math.floor(second)), { second, length });
      },
    },
  };
}

type Timed = Arrival & { readonly part: number };

/** By whole second of the day, each with the part of the second in which it comes. */
function spread(
  kept: readonly RecordedArrival[],
  { first, stretch, random }: {
    readonly first: number;
    readonly stretch: number;
    readonly random: Random;
  },
): ReadonlyMap<number, readonly Timed[]> {
  const bySecond = new Map<number, Timed[]>();
  for (const { atMs, promptTokens, outputTokens } of kept) {
    for (let copy = 0; copy < stretch; copy++) {
      // What is not stretched comes when it came.
      const jitter = stretch === 1 ? 0 : random.next() * stretch;
      const at = (atMs - first) / 1_000 * stretch + jitter;
      const [second, part] = [Math.floor(at), at % 1];
      const same = bySecond.get(second) ?? [];
      same.push({ promptTokens, outputTokens, part });
      bySecond.set(second, same);
    }
  }
  return bySecond;
}

/** Before the beginning the fleet settles on what came at the beginning. */
function wrapped(second: number, seconds: number): number {
  const span = Math.min(seconds, 1_800);
  return ((second % span) + span) % span;
}

/** What comes in one of the equal parts of a second; parts are asked for in order. */
function inPart(
  arrivals: readonly Timed[],
  { second, length }: { readonly second: number; readonly length: number },
): readonly Arrival[] {
  const from = second - Math.floor(second);
  return arrivals.filter(({ part }) => part >= from - 1e-9 && part < from + length - 1e-9);
}

function nothing(arrivals: readonly RecordedArrival[], model: string): HeddleError {
  const models = [...new Set(arrivals.map((each) => each.model))].slice(0, 5).join(", ");
  return new HeddleError(
    "invalid_input",
    arrivals.length === 0
      ? "Cannot replay the recording: it has no requests"
      : `Cannot replay the recording: it has no requests of model "${model}", but of ${models}`,
  );
}
