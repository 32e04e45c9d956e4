/** What a case may expect of the answer that its client gets. */
import { Buffer } from "node:buffer";
import { isDeepStrictEqual } from "node:util";
import {
  at,
  bodyText,
  CaseFault,
  type Check,
  eventData,
  eventJson,
  isObject,
  isStream,
  lastAnswer,
  number,
  numbers,
  object,
  parsed,
  type Seen,
  shown,
  string,
  strings,
  textOf,
  yes,
} from "./seen.ts";

const status: Check = (wanted, seen) => oneOf(numbers(wanted), lastAnswer(seen).status);

const statuses: Check = (wanted, seen) => {
  const got = seen.answers.map((answer) => answer.status);
  return isDeepStrictEqual(got, numbers(wanted)) ? undefined : `got ${shown(got)}`;
};

const contains: Check = (wanted, seen) =>
  first(strings(wanted), (text) => bodyText(seen).includes(text) ? undefined : `no ${shown(text)}`);

const containsNot: Check = (wanted, seen) =>
  first(
    strings(wanted),
    (text) => bodyText(seen).includes(text) ? `has ${shown(text)}` : undefined,
  );

const matches: Check = (wanted, seen) =>
  first(
    strings(wanted),
    (text) => new RegExp(text, "m").test(bodyText(seen)) ? undefined : `nothing matches ${text}`,
  );

const matchesNot: Check = (wanted, seen) =>
  first(strings(wanted), (text) => {
    const found = new RegExp(text, "m").exec(bodyText(seen));
    return found === null ? undefined : `${shown(found[0])} matches ${text}`;
  });

/** Each choice's content, by index, of a stream or a document. */
function choiceTexts(seen: Seen): string[] {
  const texts: string[] = [];
  const documents = isStream(lastAnswer(seen))
    ? eventJson(bodyText(seen))
    : [parsed(bodyText(seen))];
  for (const choice of documents.flatMap((json) => list(at(json, "choices")))) {
    const index = Number(at(choice, "index") ?? 0);
    const content = at(choice, "delta.content") ?? at(choice, "message.content") ??
      at(choice, "text");
    texts[index] = (texts[index] ?? "") + (typeof content === "string" ? content : "");
  }
  return texts;
}

/** The client's JSON is the engine's, event by event; the usage chunk only if it was asked for. */
function jsonEqual(seen: Seen): string | undefined {
  const script = seen.scripts[seen.calls.length - 1];
  if (script === undefined) return "no engine was called";
  const said = textOf(script.body);
  if (!isStream(lastAnswer(seen))) {
    return isDeepStrictEqual(parsed(bodyText(seen)), parsed(said)) ? undefined : "the JSON differs";
  }
  const asked = at(parsed(textOf(seen.requestBody)), "stream_options.include_usage") === true;
  const expected = eventJson(said).filter((json) => asked || !isUsageOnly(json));
  const got = eventJson(bodyText(seen));
  const different = expected.findIndex((json, index) => !isDeepStrictEqual(json, got[index]));
  if (different >= 0) return `event ${different} differs: ${shown(got[different])}`;
  return got.length > expected.length
    ? `${got.length - expected.length} events too many`
    : undefined;
}

function isUsageOnly(json: unknown): boolean {
  return list(at(json, "choices")).length === 0 && isObject(at(json, "usage"));
}

const bytesEqual: Check = (wanted, seen) => {
  yes(wanted);
  const script = seen.scripts[seen.calls.length - 1];
  if (script !== undefined && Buffer.compare(script.body, lastAnswer(seen).body) === 0) {
    return undefined;
  }
  return jsonEqual(seen);
};

const jsonPath: Check = (wanted, seen) =>
  first(strings(wanted), (path) => {
    const value = at(parsed(bodyText(seen)), path);
    return value === undefined || value === null || value === "" ? `nothing at ${path}` : undefined;
  });

const types: Check = (wanted, seen) =>
  first(Object.entries(object(wanted)), ([path, allowed]) => {
    const value = at(parsed(bodyText(seen)), path);
    const type = value === null ? "null" : Array.isArray(value) ? "array" : typeof value;
    return string(allowed).split("|").includes(type) ? undefined : `${path} is ${type}`;
  });

const json: Check = (wanted, seen) =>
  first(Object.entries(object(wanted)), ([path, value]) => {
    const got = at(parsed(bodyText(seen)), path);
    return isDeepStrictEqual(got, value) ? undefined : `${path} is ${shown(got)}`;
  });

const equalToFile: Check = (wanted, seen) => {
  const file = seen.read(string(wanted));
  const { body } = lastAnswer(seen);
  if (Buffer.compare(file, body) === 0) return undefined;
  const json = parsed(textOf(body));
  const same = json !== undefined && isDeepStrictEqual(json, parsed(textOf(file)));
  return same ? undefined : `got ${shown(textOf(body))}`;
};

const embeddingIs: Check = (wanted, seen) => {
  const words = /^(base64 float32 little-endian of|floats?(?: of)?) (\[[^\]]*\])/.exec(
    string(wanted),
  );
  const floats = list(parsed(words?.[2] ?? "")).map(Number);
  if (words === null) throw new CaseFault(`cannot read ${shown(wanted)}`);
  const got = at(parsed(bodyText(seen)), "data.0.embedding");
  const want = words[1]?.startsWith("base64")
    ? Buffer.from(new Uint8Array(Float32Array.from(floats).buffer)).toString("base64")
    : floats;
  return isDeepStrictEqual(got, want) ? undefined : `got ${shown(got)}`;
};

const everyLine: Check = (wanted, seen) => {
  const pattern = new RegExp(string(wanted));
  const bad = bodyText(seen).split(/\r\n|\r|\n/).find((line) => !pattern.test(line));
  return bad === undefined ? undefined : `the line ${shown(bad)}`;
};

const eventsParse: Check = (wanted, seen) => {
  yes(wanted);
  const events = eventData(bodyText(seen));
  if (events.length === 0) return "there is no event";
  const bad = events.find((data) => data.trim() !== "[DONE]" && parsed(data) === undefined);
  return bad === undefined ? undefined : `the event ${shown(bad)}`;
};

const usageEvents: Check = (wanted, seen) => {
  const count = eventJson(bodyText(seen)).filter((event) => isObject(at(event, "usage"))).length;
  return oneOf(numbers(wanted), count);
};

const headerContains: Check = (wanted, seen) =>
  first(Object.entries(object(wanted)), ([name, part]) => {
    const value = lastAnswer(seen).headers.get(name.toLowerCase());
    return value?.includes(string(part)) ? undefined : `${name} is ${shown(value)}`;
  });

const headersPresent: Check = (wanted, seen) =>
  first(
    strings(wanted),
    (name) => lastAnswer(seen).headers.has(name.toLowerCase()) ? undefined : `no ${name}`,
  );

const headersAbsent: Check = (wanted, seen) =>
  first(
    strings(wanted),
    (name) => lastAnswer(seen).headers.has(name.toLowerCase()) ? `has ${name}` : undefined,
  );

const retryAfter: Check = (wanted, seen) => {
  const [low = NaN, high = NaN] = numbers(wanted);
  const value = lastAnswer(seen).headers.get("retry-after") ?? "";
  const seconds = /^[0-9]+$/.test(value) ? Number(value) : NaN;
  return seconds >= low && seconds <= high ? undefined : `retry-after is ${shown(value)}`;
};

const headerIf429: Check = (wanted, seen) => {
  const wishes = Object.entries(object(wanted));
  if (lastAnswer(seen).status !== 429) return undefined;
  return first(wishes, ([name, value]) => {
    const got = lastAnswer(seen).headers.get(name.toLowerCase());
    return got === value ? undefined : `${name} is ${shown(got)}`;
  });
};

const heartbeat: Check = (wanted, seen) => {
  const beat = lastAnswer(seen).arrivals.find(({ text }) => /(?:^|\n):/.test(text));
  if (beat === undefined) return "there is no heartbeat";
  return beat.atMs < number(wanted) ? undefined : `the first is after ${Math.round(beat.atMs)} ms`;
};

const within: Check = (wanted, seen) => {
  const { durationMs } = lastAnswer(seen);
  return durationMs <= number(wanted) ? undefined : `it took ${Math.round(durationMs)} ms`;
};

export const CLIENT_CHECKS = {
  status,
  client_status: status,
  last_status: status,
  t2_status: status,
  other_tenant_status: status,
  statuses,
  text: (wanted, seen) => same(string(wanted), choiceTexts(seen)[0] ?? ""),
  choice_texts: (wanted, seen) => same(strings(wanted), choiceTexts(seen)),
  text_length: (wanted, seen) => oneOf([number(wanted)], (choiceTexts(seen)[0] ?? "").length),
  json,
  json_equal: (wanted, seen) => {
    yes(wanted);
    return jsonEqual(seen);
  },
  bytes_equal_or_json_equal: bytesEqual,
  json_path: jsonPath,
  types,
  must_contain: contains,
  must_not_contain: containsNot,
  must_match: matches,
  must_not_match: matchesNot,
  every_line_matches: everyLine,
  events_parse_as_json: eventsParse,
  ends_with: (wanted, seen) =>
    bodyText(seen).endsWith(string(wanted))
      ? undefined
      : `ends with ${shown(bodyText(seen).slice(-40))}`,
  client_usage_events: usageEvents,
  headers_present: headersPresent,
  headers_absent: headersAbsent,
  header_contains: headerContains,
  retry_after_range: retryAfter,
  must_have_header_if_429: headerIf429,
  heartbeat_before_ms: heartbeat,
  within_ms: within,
  embedding_is: embeddingIs,
  equal_to_file: equalToFile,
} as const satisfies Record<string, Check>;

function first<T>(items: readonly T[], check: (item: T) => string | undefined): string | undefined {
  for (const item of items) {
    const problem = check(item);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

function same(wanted: unknown, got: unknown): string | undefined {
  return isDeepStrictEqual(wanted, got) ? undefined : `got ${shown(got)}`;
}

function oneOf(wanted: readonly number[], got: number): string | undefined {
  return wanted.includes(got) ? undefined : `got ${got}`;
}

function list(value: unknown): unknown[] {
  return Array.isArray(value) ? value : [];
}
