/** What a case may expect of what reaches the engines. */
import { Buffer } from "node:buffer";
import { isDeepStrictEqual } from "node:util";
import { readJsonBody } from "../../../router/core/request/json_body.ts";
import { estimatePromptTokens } from "../../../router/core/request/prompt_estimate.ts";
import type { EngineCall } from "../wire/scripted_engine.ts";
import {
  at,
  CaseFault,
  type Check,
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

/** `check` of every call; there must be one. */
function everyCall(
  seen: Seen,
  check: (call: EngineCall) => string | undefined,
): string | undefined {
  if (seen.calls.length === 0) return "no engine was called";
  return seen.calls.map(check).find((problem) => problem !== undefined);
}

function bodyOf(call: EngineCall): string {
  return textOf(call.body);
}

const calls: Check = (wanted, seen) =>
  numbers(wanted).includes(seen.calls.length) ? undefined : `got ${seen.calls.length}`;

/** Counts by replica or by the model that the engine was asked for. */
const callsTo: Check = (wanted, seen) =>
  Object.entries(object(wanted)).map(([name, count]) => {
    const got = seen.calls.filter((call) => call.replica === name || modelOf(call) === name).length;
    return numbers(count).includes(got) ? undefined : `${got} to ${name}`;
  }).find((problem) => problem !== undefined);

const bodyHas: Check = (wanted, seen) =>
  everyCall(seen, (call) =>
    Object.entries(object(wanted)).map(([path, value]) => {
      const got = at(parsed(bodyOf(call)), path);
      return isDeepStrictEqual(got, value) ? undefined : `${path} is ${shown(got)}`;
    }).find((problem) => problem !== undefined));

const bodyContains: Check = (wanted, seen) =>
  everyCall(seen, (call) => {
    const missing = strings(wanted).find((text) => !bodyOf(call).includes(text));
    return missing === undefined ? undefined : `no ${shown(missing)}`;
  });

const bodyContainsIfCalled: Check = (wanted, seen) =>
  seen.calls.length === 0 ? undefined : bodyContains(wanted, seen);

const bodyAbsent: Check = (wanted, seen) => {
  const found = strings(wanted).find((text) =>
    seen.calls.some((call) => bodyOf(call).includes(text))
  );
  return found === undefined ? undefined : `has ${shown(found)}`;
};

const headers: Check = (wanted, seen) =>
  everyCall(seen, (call) =>
    Object.entries(object(wanted)).map(([name, value]) => {
      const got = call.headers.get(name.toLowerCase());
      return got === value ? undefined : `${name} is ${shown(got)}`;
    }).find((problem) => problem !== undefined));

const headersAbsent: Check = (wanted, seen) =>
  everyCall(seen, (call) => {
    const found = strings(wanted).find((name) => call.headers.has(name.toLowerCase()));
    return found === undefined ? undefined : `has ${found}`;
  });

const aborted: Check = (wanted, seen) => {
  const got = seen.calls.some((call) => call.abortedAt !== undefined);
  if (typeof wanted !== "boolean") throw new CaseFault(`want true or false`);
  return got === wanted ? undefined : `got ${got}`;
};

const abortedWithin: Check = (wanted, seen) => {
  const { leftAt } = lastAnswer(seen);
  if (leftAt === undefined) return "the client did not leave";
  return everyCall(seen, ({ abortedAt }) => {
    if (abortedAt === undefined) return "the engine was not freed";
    const afterMs = abortedAt - leftAt;
    return afterMs <= number(wanted) ? undefined : `freed after ${Math.round(afterMs)} ms`;
  });
};

const fileEqual: Check = (wanted, seen) => {
  yes(wanted);
  const sent = filePart(seen.requestBody);
  if (sent === undefined) throw new CaseFault("the request holds no file");
  return everyCall(seen, (call) => {
    const got = filePart(call.body);
    if (got === undefined) return "the engine got no file";
    return Buffer.compare(sent, got) === 0 ? undefined : "the file differs";
  });
};

/** The bytes of the first part of a multipart body that has a file's name. */
function filePart(body: Uint8Array): Uint8Array | undefined {
  const bytes = Buffer.from(body.buffer, body.byteOffset, body.length);
  const boundary = bytes.subarray(0, bytes.indexOf("\r\n"));
  const name = bytes.indexOf("filename=");
  if (name < 0 || boundary.length === 0) return undefined;
  const start = bytes.indexOf("\r\n\r\n", name) + 4;
  const end = bytes.indexOf(Buffer.concat([Buffer.from("\r\n"), boundary]), start);
  return end < 0 ? undefined : bytes.subarray(start, end);
}

/** The model that the engine was asked for, in JSON or in a form. */
function modelOf(call: EngineCall): unknown {
  const form = /name="model"\r\n(?:[^\r\n]+\r\n)*\r\n([^\r\n]*)/.exec(bodyOf(call));
  return at(parsed(bodyOf(call)), "model") ?? form?.[1];
}

const routedModel: Check = (wanted, seen) =>
  everyCall(
    seen,
    (call) => modelOf(call) === string(wanted) ? undefined : `got ${shown(modelOf(call))}`,
  );

/** Nothing went where no engine of the case listens: every try of the router is a call seen. */
const outbound: Check = (wanted, seen) => {
  if (!/^configured replicas\b/.test(string(wanted))) {
    throw new CaseFault(`cannot read ${shown(wanted)}`);
  }
  const tries = seen.records.reduce((sum, record) => sum + record.tries, 0);
  return tries === seen.calls.length ? undefined : `${tries} tries, ${seen.calls.length} calls`;
};

/** A pattern such as ["a", "a", "b"]: calls of one letter share a salt, of two do not. */
const salts: Check = (wanted, seen) => {
  const letters = strings(wanted);
  const got = seen.calls.map((call) =>
    JSON.stringify([
      call.headers.get("x-cache-salt"),
      at(parsed(bodyOf(call)), "cache_salt"),
      at(parsed(bodyOf(call)), "extra_key"),
    ])
  );
  if (got.length !== letters.length) return `${got.length} calls`;
  if (got.includes(JSON.stringify([undefined, undefined, undefined]))) return "a call has no salt";
  for (const [i, letter] of letters.entries()) {
    for (const [j, other] of letters.entries()) {
      if ((letter === other) !== (got[i] === got[j])) {
        return `calls ${i} and ${j}: ${got[i]}, ${got[j]}`;
      }
    }
  }
  return undefined;
};

/** A number, or how many requests fit under a limit of tokens: "floor(100/(prompt estimate+16))". */
function mostAdmitted(wanted: unknown, seen: Seen): number {
  if (typeof wanted !== "string") return number(wanted);
  const [, limit, answer] = /^floor\((\d+)\/\(prompt estimate\+(\d+)\)\)$/.exec(wanted) ?? [];
  const body = readJsonBody(seen.requestBody);
  if (limit === undefined || body.kind === "invalid") {
    throw new CaseFault(`no number: ${shown(wanted)}`);
  }
  return Math.floor(Number(limit) / (estimatePromptTokens(body) + Number(answer)));
}

export const ENGINE_CHECKS = {
  upstream_calls: calls,
  upstream_calls_to: callsTo,
  upstream_body_has: bodyHas,
  upstream_body_contains: bodyContains,
  upstream_body_contains_if_called: bodyContainsIfCalled,
  upstream_body_absent: bodyAbsent,
  upstream_salt: salts,
  upstream_headers: headers,
  upstream_headers_absent: headersAbsent,
  upstream_aborted: aborted,
  upstream_aborted_within_ms: abortedWithin,
  upstream_file_bytes_equal: fileEqual,
  routed_model: routedModel,
  outbound_only_to: outbound,
  admitted_max: (wanted, seen) =>
    seen.calls.length <= mostAdmitted(wanted, seen) ? undefined : `got ${seen.calls.length}`,
} as const satisfies Record<string, Check>;
