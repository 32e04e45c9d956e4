import { deepEqual, equal } from "node:assert/strict";
import { type ParsedRequest, parseRequest, upstreamBody } from "./request.ts";
import { matchRoute } from "./route.ts";

function route(path = "/v1/chat/completions") {
  const match = matchRoute("POST", path);
  if (match.kind !== "route" || match.route.kind !== "inference") throw new Error(path);
  return match.route;
}

function parse(text: string, path?: string) {
  return parseRequest(route(path), new TextEncoder().encode(text));
}

function parsed(text: string, path?: string): ParsedRequest {
  const step = parse(text, path);
  if (step.kind === "end") throw new Error(JSON.stringify(step.outcome));
  return step.value;
}

function body(text: string, servedName: string, path?: string): string {
  return new TextDecoder().decode(upstreamBody(parsed(text, path), servedName));
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

Deno.test("upstreamBody() changes the router's own members and no other byte", () => {
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

Deno.test("upstreamBody() asks for usage in every stream and keeps the client's options", () => {
  const options = (text: string) => JSON.parse(body(text, "m")).stream_options;
  deepEqual(options('{"model":"m","stream":true}'), { include_usage: true });
  deepEqual(options('{"model":"m","stream":true,"stream_options":{"x":1}}'), {
    x: 1,
    include_usage: true,
  });
  equal(options('{"model":"m"}'), undefined);
});
