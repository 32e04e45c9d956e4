/** For every key of `expect`: it holds where the router was right, and not where it was wrong. */
import { Buffer } from "node:buffer";
import assert from "node:assert/strict";
import type { UsageRecord } from "../../../router/core/request/usage_record.ts";
import { CHECKS, failures } from "./checks.ts";
import type { ClientAnswer } from "../wire/raw_client.ts";
import type { EngineCall } from "../wire/scripted_engine.ts";
import type { Seen } from "./seen.ts";

const RECORD: UsageRecord = {
  requestId: "r",
  clientAddress: "127.0.0.1",
  caller: "c",
  route: "chat_completions",
  modelAsked: "fx-chat",
  model: "fx-chat",
  replicaId: "a",
  pool: "",
  outcome: "ok",
  stream: true,
  key: undefined,
  status: 200,
  attempts: [],
  costMicro: 0,
  band: "",
  routingProfile: "",
  queueMs: 0,
  tries: 1,
  usage: { promptTokens: 11, completionTokens: 4, cachedTokens: 8, reasoningTokens: 2 },
  estimated: false,
  durationMs: 1,
  firstContentMs: 1,
};

function answer(body: string, more: Partial<ClientAnswer> = {}): ClientAnswer {
  return {
    status: 200,
    headers: new Map([["content-type", "application/json"]]),
    body: Buffer.from(body),
    whole: true,
    arrivals: [],
    durationMs: 10,
    leftAt: undefined,
    ...more,
  };
}

function stream(body: string, more: Partial<ClientAnswer> = {}): ClientAnswer {
  return answer(body, { headers: new Map([["content-type", "text/event-stream"]]), ...more });
}

function call(body: string, more: Partial<EngineCall> = {}): EngineCall {
  return {
    replica: "a",
    method: "POST",
    path: "/v1/chat/completions",
    headers: new Map(),
    body: Buffer.from(body),
    arrivedAt: 0,
    abortedAt: undefined,
    ...more,
  };
}

function seen(more: Partial<Seen> = {}): Seen {
  return {
    request: { method: "POST", path: "/v1/x", headers: {}, transfer: ["content-length"] },
    requestBody: Buffer.from("{}"),
    answers: [answer("{}")],
    calls: [],
    scripts: [],
    records: [RECORD],
    failedTries: 0,
    inFlight: 0,
    reserved: [],
    reservedAfter: 0,
    memoryGrowthMib: 1,
    read: () => Buffer.from('{"a":1}'),
    ...more,
  };
}

function script(body: string): Seen["scripts"][number] {
  return {
    status: 200,
    headers: {},
    pieces: [],
    gapMs: 0,
    firstByteDelayMs: 0,
    mute: false,
    end: "close",
    body: Buffer.from(body),
  };
}

const said = (text: string): Partial<Seen> => ({ answers: [answer(text)] });
const streamed = (text: string): Partial<Seen> => ({ answers: [stream(text)] });
const got = (status: number): Partial<Seen> => ({ answers: [answer("{}", { status })] });
const headed = (name: string, value: string, status = 200): Partial<Seen> => ({
  answers: [answer("{}", { status, headers: new Map([[name, value]]) })],
});
const asked = (body: string, more: Partial<EngineCall> = {}): Partial<Seen> => ({
  calls: [call(body, more)],
});
const booked = (more: Partial<UsageRecord>): Partial<Seen> => ({
  records: [{ ...RECORD, ...more }],
});

const delta = (content: string, index = 0) =>
  `data: ${JSON.stringify({ choices: [{ index, delta: { content } }] })}\n\n`;
const USAGE = 'data: {"choices":[],"usage":{"prompt_tokens":1}}\n\n';

/** What an engine said and what the client got of it. */
const relayed = (engine: string, client: string): Partial<Seen> => ({
  calls: [call("{}")],
  scripts: [script(engine)],
  answers: [stream(client)],
});

const form = (file: string) =>
  `--b\r\ncontent-disposition: form-data; name="file"; filename="a"\r\n\r\n${file}\r\n--b\r\n` +
  'content-disposition: form-data; name="model"\r\n\r\nfx-asr\r\n--b--\r\n';

type Try = readonly [key: string, wanted: unknown, right: Partial<Seen>, wrong: Partial<Seen>];

const TRIES: readonly Try[] = [
  ["status", 200, got(200), got(500)],
  ["status", [200, 400], got(400), got(401)],
  ["client_status", "502 (the router key is wrong)", got(502), got(401)],
  ["last_status", 200, { answers: [answer("", { status: 429 }), answer("")] }, got(429)],
  ["t2_status", 404, got(404), got(200)],
  ["other_tenant_status", 404, got(404), got(200)],
  ["statuses", [200, 429], { answers: [answer(""), answer("", { status: 429 })] }, got(200)],
  ["text", "ab", streamed(delta("a") + delta("x", 1) + delta("b")), streamed(delta("a"))],
  ["choice_texts", ["a", "b"], streamed(delta("a") + delta("b", 1)), streamed(delta("ab"))],
  ["text_length", 2, streamed(delta("ab")), streamed(delta("a"))],
  ["json", { "a.b": 1 }, said('{"a":{"b":1}}'), said('{"a":{"b":2}}')],
  ["json_equal", true, relayed(delta("a"), delta("a")), relayed(delta("a"), delta("b"))],
  [
    "json_equal",
    true,
    relayed(delta("a") + USAGE, delta("a")),
    relayed(delta("a"), delta("a") + USAGE),
  ],
  [
    "json_equal",
    true,
    relayed(delta("a"), delta("a")),
    relayed(delta("a") + delta("b"), delta("a")),
  ],
  ["bytes_equal_or_json_equal", true, relayed("x", "x"), relayed(delta("a"), delta("b"))],
  [
    "json_path",
    "error.message",
    said('{"error":{"message":"x"}}'),
    said('{"error":{"message":""}}'),
  ],
  ["types", { "a": "string|null" }, said('{"a":null}'), said('{"a":1}')],
  ["must_contain", ["a", "b"], said("ab"), said("a")],
  ["must_not_contain", "LOST", said("a"), said("LOST")],
  ["must_match", '^data: ?\\{"error":', said('\ndata: {"error":1}'), said('x data: {"error":1}')],
  ["must_not_match", "^(id|retry):", said("data: id:"), said("data: a\nretry: 1")],
  ["every_line_matches", "^(data: .*)?$", said("data: a\n\n"), said("data: a\nx\n")],
  [
    "events_parse_as_json",
    true,
    streamed(`${delta("a")}data: [DONE]\n\n`),
    streamed("data: x\n\n"),
  ],
  ["ends_with", "data: [DONE]\n\n", streamed("data: [DONE]\n\n"), streamed(delta("a"))],
  ["client_usage_events", 1, streamed(USAGE), streamed(USAGE + USAGE)],
  ["headers_present", ["Retry-After"], headed("retry-after", "1"), headed("x", "1")],
  ["headers_absent", ["server"], headed("x", "1"), headed("server", "1")],
  ["header_contains", { "x-a": "b" }, headed("x-a", "abc"), headed("x-a", "ac")],
  ["retry_after_range", [1, 120], headed("retry-after", "120"), headed("retry-after", "3600")],
  ["retry_after_range", [1, 120], headed("retry-after", "1"), headed("x", "1")],
  [
    "must_have_header_if_429",
    { "x-should-retry": "false" },
    headed("x-should-retry", "false", 429),
    headed("x", "1", 429),
  ],
  ["heartbeat_before_ms", 100, {
    answers: [stream("", { arrivals: [{ atMs: 90, text: ": ping\n" }] })],
  }, { answers: [stream("", { arrivals: [{ atMs: 110, text: ": ping\n" }] })] }],
  ["heartbeat_before_ms", 100, {
    answers: [stream("", { arrivals: [{ atMs: 9, text: "\n: x" }] })],
  }, { answers: [stream("", { arrivals: [{ atMs: 9, text: "data: : x" }] })] }],
  ["within_ms", 100, { answers: [answer("", { durationMs: 99 })] }, {
    answers: [answer("", { durationMs: 101 })],
  }],
  [
    "embedding_is",
    "base64 float32 little-endian of [0.5,-0.25,1]",
    said('{"data":[{"embedding":"AAAAPwAAgL4AAIA/"}]}'),
    said('{"data":[{"embedding":[0.5,-0.25,1]}]}'),
  ],
  [
    "embedding_is",
    "floats [0.5]",
    said('{"data":[{"embedding":[0.5]}]}'),
    said('{"data":[{"embedding":[]}]}'),
  ],
  ["equal_to_file", "res/a.json", said('{ "a": 1 }'), said('{"a":2}')],
  ["upstream_calls", "1 or 2 (other replica)", asked(""), {}],
  ["upstream_calls", 0, {}, asked("")],
  ["upstream_calls_to", { a: 1, b: 0 }, asked(""), asked("", { replica: "b" })],
  ["upstream_calls_to", { "fx-b": 1 }, asked('{"model":"fx-b"}'), asked('{"model":"fx-c"}')],
  ["upstream_body_has", { "a.b": true }, asked('{"a":{"b":true}}'), asked('{"a":{"b":false}}')],
  ["upstream_body_has", { a: 1 }, asked('{"a":1}'), {}],
  ["upstream_body_contains", ["1.0"], asked('{"a":1.0}'), asked('{"a":1}')],
  ["upstream_body_contains_if_called", ["top_k"], {}, asked("{}")],
  ["upstream_body_absent", ["api_base"], asked("{}"), asked('{"api_base":1}')],
  ["upstream_salt", ["a", "a", "b"], {
    calls: ["1", "1", "2"].map((salt) => call(`{"cache_salt":"${salt}"}`)),
  }, { calls: ["1", "2", "2"].map((salt) => call(`{"cache_salt":"${salt}"}`)) }],
  ["upstream_salt", ["a"], asked('{"cache_salt":"1"}'), asked("{}")],
  ["upstream_headers", { "X-A": "1" }, asked("", { headers: new Map([["x-a", "1"]]) }), asked("")],
  [
    "upstream_headers_absent",
    ["content-encoding"],
    asked(""),
    asked("", { headers: new Map([["content-encoding", "zstd"]]) }),
  ],
  ["upstream_aborted", true, asked("", { abortedAt: 1 }), asked("")],
  ["upstream_aborted", false, asked(""), asked("", { abortedAt: 1 })],
  ["upstream_aborted_within_ms", 100, {
    ...asked("", { abortedAt: 90 }),
    answers: [answer("", { leftAt: 0 })],
  }, { ...asked("", { abortedAt: 110 }), answers: [answer("", { leftAt: 0 })] }],
  ["upstream_aborted_within_ms", 100, {
    ...asked("", { abortedAt: 90 }),
    answers: [answer("", { leftAt: 0 })],
  }, { ...asked(""), answers: [answer("", { leftAt: 0 })] }],
  ["upstream_file_bytes_equal", true, {
    requestBody: Buffer.from(form("abc")),
    ...asked(form("abc")),
  }, { requestBody: Buffer.from(form("abc")), ...asked(form("abd")) }],
  ["routed_model", "fx-asr", asked(form("abc")), asked('{"model":"fx-chat"}')],
  ["outbound_only_to", "configured replicas", asked(""), booked({ tries: 1 })],
  ["admitted_max", 1, asked(""), { calls: [call(""), call("")] }],
  // Two bytes of JSON are a token, and one request of seventeen fits under twenty.
  ["admitted_max", "floor(20/(prompt estimate+16))", asked(""), { calls: [call(""), call("")] }],
  ["reservation_max", 100, { reserved: [0, 100, 40] }, { reserved: [101] }],
  ["reservation_max", 100, { reserved: [1] }, { reserved: [] }],
  ["reservation_after", 0, {}, { reservedAfter: 1 }],
  [
    "usage",
    { prompt_tokens: 11, completion_tokens: 4, cached_tokens: 8, reasoning_tokens: 2 },
    {},
    booked({ usage: { promptTokens: 11, completionTokens: 5 } }),
  ],
  [
    "usage",
    { prompt_tokens: 0 },
    booked({ usage: { promptTokens: 0, completionTokens: 0 } }),
    booked({ usage: undefined }),
  ],
  [
    "usage_min",
    { completion_tokens: 1 },
    {},
    booked({ usage: { promptTokens: 1, completionTokens: 0 } }),
  ],
  ["usage_records", 1, {}, { records: [RECORD, RECORD] }],
  ["usage_records", 0, booked({ usage: undefined }), {}],
  ["estimated", false, {}, booked({ estimated: true })],
  ["outcome", "ok", {}, booked({ outcome: "stream_broken" })],
  ["outcome", "upstream_error", booked({ outcome: "stream_broken" }), {}],
  ["outcome", "upstream_error", booked({ outcome: "engine_failed" }), { records: [] }],
  ["outcome", "client_closed", booked({ outcome: "client_closed" }), {}],
  ["replica_failure_counted", true, { failedTries: 1 }, {}],
  ["in_flight_after", 0, {}, { inFlight: 1 }],
  ["peak_memory_growth_below_mib", 64, {}, { memoryGrowthMib: 65 }],
];

for (const [index, [key, wanted, right, wrong]] of TRIES.entries()) {
  Deno.test(`expect.${key} tells a right router from a wrong one (${index})`, () => {
    assert.deepEqual(failures({ [key]: wanted }, seen(right)), []);
    assert.equal(failures({ [key]: wanted }, seen(wrong)).length, 1);
  });
}

Deno.test("every key of expect has a test in which a wrong router fails", () => {
  const tried = new Set(TRIES.map(([key]) => key));
  assert.deepEqual(Object.keys(CHECKS).filter((key) => !tried.has(key)), []);
});

Deno.test("a case that wants something impossible to read fails, and says so", () => {
  for (
    const [key, wanted] of [
      ["status", "any"],
      ["text", 1],
      ["json_equal", false],
      ["embedding_is", "as before"],
      ["outbound_only_to", "somewhere"],
      ["must_match", "("],
      ["usage", { tokens: 1 }],
      ["reservation_max", 1],
    ] as const
  ) {
    assert.equal(failures({ [key]: wanted }, seen()).length, 1, key);
  }
});
