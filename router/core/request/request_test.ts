import { deepEqual, equal } from "node:assert/strict";
import { type ParsedRequest, parseRequest, type RequestPolicy } from "./request.ts";
import { matchRoute } from "./route.ts";

const POLICY: RequestPolicy = {
  controlFields: "strip",
  mediaUrls: { fetch: "data", hosts: [] },
};

function route(path = "/v1/chat/completions") {
  const match = matchRoute("POST", path);
  if (match.kind !== "route" || match.route.kind !== "inference") throw new Error(path);
  return match.route;
}

function parse(text: string, path?: string, policy: RequestPolicy = POLICY) {
  return parseRequest(route(path), new TextEncoder().encode(text), policy);
}

function parsed(text: string, path?: string): ParsedRequest {
  const step = parse(text, path);
  if (step.kind === "end") throw new Error(JSON.stringify(step.outcome));
  return step.value;
}

function body(text: string, servedName: string, path?: string): string {
  const [bytes] = parsed(text, path).body(servedName);
  if (!(bytes instanceof Uint8Array)) throw new Error("want bytes");
  return new TextDecoder().decode(bytes);
}

Deno.test("parseRequest() reads what the router needs", () => {
  const request = parsed('{"model":"m","stream":true,"stream_options":{"include_usage":true}}');
  deepEqual([request.model, request.stream, request.wantsUsage], ["m", true, true]);
  equal(parsed('{"model":"m","stream":true}').wantsUsage, false);
  equal(parsed('{"model":"m","stream":null}').stream, false);
  equal(parsed('{"model":"m","stream":true,"input":"x"}', "/v1/embeddings").stream, false);
});

Deno.test("parseRequest() refuses what it cannot read, naming the member", () => {
  const cases: [text: string, param: string | undefined][] = [
    ["", undefined],
    ["[]", undefined],
    ["{", undefined],
    ['{"model":"m"} x', undefined],
    ['{"model":"a","model":"b"}', undefined],
    ['{"model":"a","mod\\u0065l":"b"}', undefined],
    ["{}", "model"],
    ['{"model":1}', "model"],
    ['{"model":""}', "model"],
    ['{"model":"m","stream":"yes"}', "stream"],
    ['{"model":"m","n":129}', "n"],
    ['{"model":"m","stream":true,"stream_options":1}', "stream_options"],
  ];
  for (const [text, param] of cases) {
    const step = parse(text);
    const outcome = step.kind === "end" ? step.outcome : undefined;
    equal(outcome?.reason, "invalid_request", text);
    equal(outcome !== undefined && "param" in outcome ? outcome.param : undefined, param, text);
  }
});

Deno.test("parseRequest() changes the router's own members and no other byte", () => {
  equal(
    body('{ "model" : "m", "seed":9007199254740993, "t":1.0,"k":"\\u00e9" }', "org/x"),
    '{ "model" : "org/x", "seed":9007199254740993, "t":1.0,"k":"\\u00e9" }',
  );
  equal(body('{"model":"m","messages":[]}', "m"), '{"model":"m","messages":[]}');
  equal(
    body('{"model":"m","priority":-9,"messages":[],"rid":"x","lora_path":"/etc"}', "m"),
    '{"model":"m","messages":[]}',
  );
});

Deno.test("parseRequest() asks for usage in every stream and keeps the client's options", () => {
  const options = (text: string) => JSON.parse(body(text, "m")).stream_options;
  deepEqual(options('{"model":"m","stream":true}'), { include_usage: true });
  deepEqual(options('{"model":"m","stream":true,"stream_options":{"x":1}}'), {
    x: 1,
    include_usage: true,
  });
  equal(options('{"model":"m"}'), undefined);
});

Deno.test("parseRequest() names the control fields that it drops, or refuses them by policy", () => {
  const text = '{"priority":-9,"model":"m","messages":[],"cache_salt":"x"}';
  deepEqual(parsed(text).answerHeaders, { "x-heddle-dropped": "priority, cache_salt" });
  deepEqual(parsed('{"model":"m","top_k":4}').answerHeaders, {});
  const step = parse(text, undefined, { ...POLICY, controlFields: "refuse" });
  deepEqual(step, {
    kind: "end",
    outcome: {
      reason: "invalid_request",
      message: '"priority" is not for callers to set',
      param: "priority",
    },
  });
});

Deno.test("parseRequest() keeps a Responses request from being stored, and says so", () => {
  const path = "/v1/responses";
  equal(
    body('{"model":"m","store":true,"input":"x"}', "m", path),
    '{"model":"m","store":false,"input":"x"}',
  );
  equal(
    body('{"model":"m","stream":true}', "m", path),
    '{"model":"m","stream":true,"store":false}',
  );
  deepEqual(parsed('{"model":"m","input":"x"}', path).answerHeaders, {
    "x-heddle-store": "false",
  });
});

Deno.test("parseRequest() refuses a Responses request that needs what nobody keeps", () => {
  const cases: [text: string, reason: string, param: string][] = [
    ['"previous_response_id":"resp_1"', "response_not_found", "previous_response_id"],
    ['"conversation":{"id":"conv_1"}', "invalid_request", "conversation"],
    ['"background":true', "invalid_request", "background"],
    ['"prompt":{"id":"pmpt_1"}', "invalid_request", "prompt"],
    ['"input":[{"type":"item_reference","id":"msg_1"}]', "invalid_request", "input"],
  ];
  for (const [text, reason, param] of cases) {
    const step = parse(`{"model":"m",${text}}`, "/v1/responses");
    const outcome = step.kind === "end" ? step.outcome : undefined;
    equal(outcome?.reason, reason, text);
    equal(outcome !== undefined && "param" in outcome ? outcome.param : undefined, param);
  }
  equal(
    parse(
      '{"model":"m","previous_response_id":null,"background":false,"input":[{"role":"user"}]}',
      "/v1/responses",
    ).kind,
    "next",
  );
  equal(parse('{"model":"m","prompt":"once"}', "/v1/completions").kind, "next");
});

Deno.test("parseRequest() reads what bounds the answer, for all choices together", () => {
  const bound = (text: string, path?: string) => parsed(text, path).answerTokensMax;
  equal(bound('{"model":"m"}'), undefined);
  equal(bound('{"model":"m","max_tokens":10}'), 10);
  equal(bound('{"model":"m","max_tokens":10,"max_completion_tokens":7}'), 7);
  equal(bound('{"model":"m","max_tokens":10,"n":3}'), 30);
  equal(bound('{"model":"m","max_tokens":-1}'), undefined);
  equal(bound('{"model":"m","max_output_tokens":5,"input":"x"}', "/v1/responses"), 5);
});
