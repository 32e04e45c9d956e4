import assert from "node:assert/strict";
import fc from "fast-check";
import { type Blame, readEngineError, readInBandError } from "./engine_error.ts";
import { errorBody, errorEvent } from "./engine_error_shape.ts";

function read(status: number, body: unknown, secrets: readonly string[] = []) {
  const text = typeof body === "string" ? body : JSON.stringify(body);
  return readEngineError({ status, body: new TextEncoder().encode(text), secrets });
}

type Case = readonly [
  what: string,
  status: number,
  body: unknown,
  want: { status: number; blame: Blame; message: string; param?: string; code?: string },
];

const BODIES: readonly Case[] = [
  ["nested", 400, {
    error: { message: "bad role", type: "BadRequestError", param: "messages", code: 400 },
  }, { status: 400, blame: "request", message: "bad role", param: "messages" }],
  ["flat", 400, { object: "error", message: "bad role", type: "400", param: null, code: 400 }, {
    status: 400,
    blame: "request",
    message: "bad role",
  }],
  ["a string", 400, { error: "bad role" }, { status: 400, blame: "request", message: "bad role" }],
  ["FastAPI's list", 422, {
    detail: [{
      type: "missing",
      loc: ["body", "messages"],
      msg: "Field required",
      input: "secret",
    }],
  }, { status: 422, blame: "request", message: "body.messages: Field required" }],
  ["FastAPI's string", 400, { detail: "no such thing" }, {
    status: 400,
    blame: "request",
    message: "no such thing",
  }],
  ["FastAPI's object", 400, { detail: { message: "no" } }, {
    status: 400,
    blame: "request",
    message: "no",
  }],
  ["a code in words", 400, { error: { message: "no", code: "unsupported_value" } }, {
    status: 400,
    blame: "request",
    message: "no",
    code: "unsupported_value",
  }],
  ["a page", 502, "<html><body><h1>502 Bad Gateway</h1></body></html>", {
    status: 502,
    blame: "replica",
    message: "502 Bad Gateway",
    code: "engine_failed",
  }],
  ["a page without a heading", 500, "<!doctype html><p>x", {
    status: 500,
    blame: "replica",
    message: "The engine answered 500",
    code: "engine_failed",
  }],
  ["plain text", 500, "Internal Server Error\n", {
    status: 500,
    blame: "replica",
    message: "Internal Server Error",
    code: "engine_failed",
  }],
  ["nothing", 500, "", {
    status: 500,
    blame: "replica",
    message: "The engine answered 500",
    code: "engine_failed",
  }],
  ["JSON that is no error", 400, [1], { status: 400, blame: "request", message: "[1]" }],
  ["null in it", 400, { error: null, message: null }, {
    status: 400,
    blame: "request",
    message: "The engine answered 400",
  }],
  ["a message that is no text", 400, { error: { message: { a: 1 } } }, {
    status: 400,
    blame: "request",
    message: '{"a":1}',
  }],
  ["an error under 200", 200, { error: { message: "queue is full", code: 503 } }, {
    status: 503,
    blame: "saturation",
    message: "queue is full",
    code: "engine_overloaded",
  }],
  ["an error under 200 without a status", 200, { error: { message: "boom" } }, {
    status: 500,
    blame: "replica",
    message: "boom",
    code: "engine_failed",
  }],
  ["a context too long", 400, {
    error: { message: "This model's maximum context length is 4096 tokens.", code: 400 },
  }, {
    status: 400,
    blame: "request",
    message: "This model's maximum context length is 4096 tokens.",
    code: "context_length_exceeded",
  }],
  ["llama.cpp's context too long", 400, {
    error: { code: 400, type: "exceed_context_size_error", message: "the request is too big" },
  }, {
    status: 400,
    blame: "request",
    message: "the request is too big",
    code: "context_length_exceeded",
  }],
];

for (const [what, status, body, want] of BODIES) {
  Deno.test(`readEngineError() reads ${what}`, () => {
    const { error, blame } = read(status, body);
    assert.deepEqual(
      { status: error.status, blame, message: error.message, param: error.param, code: error.code },
      { param: null, code: null, ...want },
    );
  });
}

const STATUSES: readonly [status: number, told: number, blame: Blame][] = [
  [400, 400, "request"],
  [413, 413, "request"],
  [422, 422, "request"],
  // The router's own key, path or model name is wrong there; the caller's were checked before.
  [401, 502, "router"],
  [403, 502, "router"],
  [404, 400, "route"],
  [405, 400, "route"],
  [501, 400, "route"],
  [429, 503, "saturation"],
  [503, 503, "saturation"],
  [529, 503, "saturation"],
  [500, 500, "replica"],
  [502, 502, "replica"],
  [504, 504, "replica"],
  [408, 504, "replica"],
  [302, 502, "replica"],
  [599, 500, "replica"],
];

for (const [status, told, blame] of STATUSES) {
  Deno.test(`readEngineError() tells an engine's ${status} as ${told}, by the ${blame}`, () => {
    const got = read(status, { error: { message: "no" } });
    assert.deepEqual([got.error.status, got.blame], [told, blame]);
  });
}

Deno.test("readEngineError() tells a path that is not there from a model that is not", () => {
  for (
    const [body, blame] of [
      [{ detail: "Not Found" }, "route"],
      [{ error: { message: "File Not Found", type: "not_found_error", code: 404 } }, "route"],
      [{ error: { message: "The model `x` does not exist.", param: "model" } }, "router"],
      [{ error: { message: "no", param: "model" } }, "router"],
      [{ object: "error", message: "model x not found", code: 404 }, "router"],
    ] as const
  ) assert.equal(read(404, body).blame, blame, JSON.stringify(body));
});

Deno.test("readEngineError() says nothing of the router's own key", () => {
  const { error } = read(401, {
    error: { message: "Incorrect API key provided: sk-abcdefghijkl" },
  });
  assert.equal(error.message, "The engine refused the router");
});

const LEAKS: readonly [what: string, message: string, leak: string][] = [
  ["an address", "cannot reach 10.1.2.3:20001 now", "10.1.2.3"],
  ["a URL", "POST http://gpu-7.cluster.local:8000/v1/x failed", "gpu-7"],
  ["an IPv6 address", "peer fd00:1:2:3::7 is away", "fd00"],
  ["a bracketed IPv6 address", "peer [fe80::1%eth0]:20001 is away", "fe80"],
  ["a key", "bad key sk-heddle-abcdefgh12345", "abcdefgh"],
  ["a hub token", "bad token hf_abcdefghijkl", "abcdefghijkl"],
  ["a bearer token", "got Bearer xyz.abc", "xyz"],
  ["a path", "no file /var/lib/heddle/models/secret-model/config.json", "secret-model"],
  ["a given secret", "model internal-name is not loaded", "internal-name"],
  ["a given secret, twice", "internal-name, internal-name", "internal-name"],
];

for (const [what, message, leak] of LEAKS) {
  Deno.test(`readEngineError() does not pass on ${what}`, () => {
    const { error } = read(400, { error: { message } }, ["internal-name"]);
    assert.ok(!error.message.includes(leak), error.message);
    assert.match(error.message, /\[hidden\]/);
  });
}

const KEPT = [
  "max_tokens must be at most 4096, got 99999",
  "a 12:34:56 b, v1.2.3, 1.5 and std::string at user/name",
  'tool_choice "auto" requires --enable-auto-tool-choice',
  "ratio 3/4, path /v1/chat/completions",
];

for (const message of KEPT) {
  Deno.test(`readEngineError() passes on: ${message}`, () => {
    assert.equal(read(400, { error: { message } }).error.message, message);
  });
}

Deno.test("readEngineError() bounds what it passes on", () => {
  const { error } = read(400, { error: { message: "x".repeat(1_000_000) } });
  assert.ok(error.message.length <= 2_001);
});

const IN_BAND: readonly [what: string, data: unknown, status: number, blame: Blame][] = [
  [
    "nested",
    { error: { message: "queue is full", type: "SERVICE_UNAVAILABLE", code: 503 } },
    503,
    "saturation",
  ],
  [
    "flat",
    { object: "error", message: "boom", type: "InternalServerError", code: 500 },
    500,
    "replica",
  ],
  ["a string", { error: "boom" }, 500, "replica"],
  [
    "Anthropic's",
    { type: "error", error: { type: "overloaded_error", message: "x" } },
    503,
    "saturation",
  ],
  [
    "Responses' flat",
    { type: "error", code: "server_error", message: "x", param: null },
    500,
    "replica",
  ],
  ["a code as text", { error: { message: "x", code: "400" } }, 400, "request"],
  [
    "only words",
    { error: { message: "the prompt is too long for the context window" } },
    400,
    "request",
  ],
];

for (const [what, data, status, blame] of IN_BAND) {
  Deno.test(`readInBandError() reads ${what}`, () => {
    const got = readInBandError(data);
    assert.deepEqual([got?.error.status, got?.blame], [status, blame]);
  });
}

Deno.test("readInBandError() takes the event's name for it", () => {
  assert.equal(readInBandError({ message: "boom", code: 500 }), undefined);
  assert.equal(
    readInBandError({ message: "boom", code: 500 }, { named: true })?.error.message,
    "boom",
  );
  assert.equal(readInBandError("boom", { named: true })?.error.message, "boom");
});

Deno.test("readInBandError() does not take an ordinary chunk for an error", () => {
  for (const data of [{ choices: [], error: null }, { error: "" }, "error", null, 1, []]) {
    assert.equal(readInBandError(data), undefined);
  }
});

const ERROR = { status: 503, message: "full", type: "overloaded_error", param: null, code: "x" };

Deno.test("errorBody() writes each envelope", () => {
  const { status: _, ...told } = ERROR;
  assert.deepEqual(JSON.parse(errorBody(ERROR, "openai")), { error: told });
  assert.deepEqual(JSON.parse(errorBody(ERROR, "responses")), { error: told });
  assert.deepEqual(JSON.parse(errorBody(ERROR, "anthropic")), {
    type: "error",
    error: { type: "overloaded_error", message: "full" },
  });
});

Deno.test("errorEvent() writes one event that the route's clients take for an error", () => {
  assert.match(errorEvent(ERROR, "openai"), /^data: \{"error":\{[^\n]*\}\}\n\n$/);
  assert.match(errorEvent(ERROR, "anthropic"), /^event: error\ndata: \{"type":"error"[^\n]*\n\n$/);
  const both = errorEvent(ERROR, "responses");
  assert.match(both, /^event: error\ndata: \{"type":"error","code":"x","message":"full"/);
  assert.match(both, /"error":\{"message":"full"/);
  const so = { id: "resp_1", model: "m", createdAt: 5, sequenceNumber: 7 };
  const failed = errorEvent(ERROR, "responses", so);
  assert.match(failed, /^event: response.failed\ndata: /);
  const data = JSON.parse(failed.split("data: ")[1] ?? "");
  assert.deepEqual([data.sequence_number, data.response.status], [7, "failed"]);
});

Deno.test("property: readEngineError() takes any bytes and gives a whole error", () => {
  const body = fc.oneof(
    fc.uint8Array({ maxLength: 60 }),
    fc.jsonValue().map((value) => new TextEncoder().encode(JSON.stringify(value))),
    fc.record({ error: fc.jsonValue(), detail: fc.jsonValue(), message: fc.jsonValue() }, {
      requiredKeys: [],
    }).map((value) => new TextEncoder().encode(JSON.stringify(value))),
  );
  fc.assert(
    fc.property(body, fc.integer({ min: 100, max: 599 }), (bytes, status) => {
      const { error } = readEngineError({ status, body: bytes });
      assert.ok(error.status >= 400 && error.status <= 599);
      assert.ok(error.message.length > 0);
      const told = JSON.parse(errorBody(error, "openai")).error;
      assert.equal(typeof told.message, "string");
      assert.ok(told.code === null || typeof told.code === "string");
      assert.ok(!errorEvent(error, "openai").slice(0, -2).includes("\n"));
    }),
    { numRuns: 3_000 },
  );
});
