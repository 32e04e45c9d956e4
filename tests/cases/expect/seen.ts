/** All that can be seen of one request from outside and from the router's books. */
import { Buffer } from "node:buffer";
import type { UsageRecord } from "../../../router/core/request/usage_record.ts";
import type { CaseRequest } from "../case_schema.ts";
import type { Script } from "../wire/engine_script.ts";
import type { ClientAnswer } from "../wire/raw_client.ts";
import type { EngineCall } from "../wire/scripted_engine.ts";

export interface Seen {
  readonly request: CaseRequest;
  /** The request's body as the client meant it: not compressed. */
  readonly requestBody: Uint8Array;
  /** In the order of the requests; at least one. */
  readonly answers: readonly ClientAnswer[];
  readonly calls: readonly EngineCall[];
  /** What the call of the same index was answered. */
  readonly scripts: readonly Script[];
  readonly records: readonly UsageRecord[];
  /** Tries that the router holds against a replica. */
  readonly failedTries: number;
  readonly inFlight: number;
  /** Tokens reserved when each call came to an engine, and at the end. */
  readonly reserved: readonly number[];
  readonly reservedAfter: number;
  readonly memoryGrowthMib: number;
  /** A file of the case's folder. */
  readonly read: (file: string) => Uint8Array;
}

/** Undefined: as wanted. Otherwise what is there instead, in a few words. */
export type Check = (wanted: unknown, seen: Seen) => string | undefined;

/** Thrown for a case that cannot be checked as it is written. */
export class CaseFault extends Error {}

export function lastAnswer(seen: Seen): ClientAnswer {
  const answer = seen.answers.at(-1);
  if (answer === undefined) throw new CaseFault("nothing was asked");
  return answer;
}

export function textOf(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.length).toString();
}

export function bodyText(seen: Seen): string {
  return textOf(lastAnswer(seen).body);
}

export function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** The data of each event that a client would be given, by the standard's algorithm. */
export function eventData(text: string): string[] {
  const found: string[] = [];
  let data: string[] = [];
  for (const line of text.replace(/^\ufeff/, "").split(/\r\n|\r|\n/)) {
    if (line === "") {
      if (data.length > 0) found.push(data.join("\n"));
      data = [];
    } else if (/^data(:|$)/.test(line)) data.push(line.slice(5).replace(/^ /, ""));
  }
  return found;
}

/** The JSON of each event, without `[DONE]` and what is not JSON. */
export function eventJson(text: string): unknown[] {
  return eventData(text).filter((data) => data.trim() !== "[DONE]").map(parsed).filter((json) =>
    json !== undefined
  );
}

export function isStream(answer: ClientAnswer): boolean {
  return /^text\/event-stream/.test(answer.headers.get("content-type") ?? "");
}

/** The value at a dotted path, as in "choices.0.delta". */
export function at(json: unknown, path: string): unknown {
  return path.split(".").reduce(
    (value: unknown, key) =>
      isObject(value) || Array.isArray(value) ? Reflect.get(value, key) : undefined,
    json,
  );
}

export function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

export function shown(value: unknown): string {
  const text = JSON.stringify(value) ?? String(value);
  return text.length > 160 ? `${text.slice(0, 160)}…` : text;
}

// What a case may want: each throws when it wants something else.

export function number(wanted: unknown): number {
  if (typeof wanted !== "number") throw new CaseFault(`want a number, not ${shown(wanted)}`);
  return wanted;
}

export function string(wanted: unknown): string {
  if (typeof wanted !== "string") throw new CaseFault(`want a text, not ${shown(wanted)}`);
  return wanted;
}

/** One text or a list of them. */
export function strings(wanted: unknown): string[] {
  return (Array.isArray(wanted) ? wanted : [wanted]).map(string);
}

export function object(wanted: unknown): Readonly<Record<string, unknown>> {
  if (!isObject(wanted)) throw new CaseFault(`want an object, not ${shown(wanted)}`);
  return wanted;
}

/** A number, a list of them, or numbers in words: "1 or 2 (other replica)". */
export function numbers(wanted: unknown): number[] {
  if (typeof wanted === "string") {
    const found = (wanted.split("(")[0] ?? "").match(/[0-9]+/g)?.map(Number) ?? [];
    if (found.length === 0) throw new CaseFault(`no number in ${shown(wanted)}`);
    return found;
  }
  return (Array.isArray(wanted) ? wanted : [wanted]).map(number);
}

/** A wish that can only be true: `false` would say nothing. */
export function yes(wanted: unknown): void {
  if (wanted !== true) throw new CaseFault(`want true, not ${shown(wanted)}`);
}
