import { equal } from "node:assert/strict";
import { readJsonBody } from "../request/json_body.ts";
import { type MediaUrlPolicy, refusedMedia } from "./media_urls.ts";

const DATA: MediaUrlPolicy = { fetch: "data", hosts: [] };
const HOSTS: MediaUrlPolicy = { fetch: "hosts", hosts: ["img.example", ".cdn.example"] };
const PUBLIC: MediaUrlPolicy = { fetch: "public", hosts: [] };

function refused(json: string, policy: MediaUrlPolicy): string | undefined {
  const body = readJsonBody(new TextEncoder().encode(json));
  if (body.kind === "invalid") throw new Error(body.detail);
  return refusedMedia(body, policy)?.param;
}

function image(url: string): string {
  return JSON.stringify({
    messages: [{
      role: "user",
      content: [{ type: "text", text: "see" }, { type: "image_url", image_url: { url } }],
    }],
  });
}

const HTTP = "http://169.254.169.254/latest";

/** Every place where some API takes media by URL. */
const PLACES: readonly [what: string, json: unknown, param: string][] = [
  ["chat", JSON.parse(image(HTTP)), "messages"],
  ["chat, as a bare text", { messages: [{ content: [{ image_url: HTTP }] }] }, "messages"],
  ["video", { messages: [{ content: [{ video_url: { url: HTTP } }] }] }, "messages"],
  ["sound", { messages: [{ content: [{ audio_url: { url: HTTP } }] }] }, "messages"],
  ["Responses", { input: [{ content: [{ type: "input_image", image_url: HTTP }] }] }, "input"],
  ["a file of Responses", { input: [{ content: [{ file_url: HTTP }] }] }, "input"],
  ["what a tool said", {
    input: [{ type: "function_call_output", output: [{ type: "input_image", image_url: HTTP }] }],
  }, "input"],
  ["Messages", {
    messages: [{ content: [{ type: "image", source: { type: "url", url: HTTP } }] }],
  }, "messages"],
  ["a tool_result of Messages", {
    messages: [{
      content: [{
        type: "tool_result",
        content: [{ type: "document", source: { type: "url", url: HTTP } }],
      }],
    }],
  }, "messages"],
  ["rerank", { documents: [{ content: [{ image_url: { url: HTTP } }] }] }, "documents"],
  ["score", { text_2: { content: [{ image_url: { url: HTTP } }] } }, "text_2"],
  ["a member of tomorrow", { new_input: [{ image_url: HTTP }] }, "new_input"],
];

for (const [what, json, param] of PLACES) {
  Deno.test(`refusedMedia() finds a URL in ${what}`, () => {
    equal(refused(JSON.stringify(json), DATA), param);
    equal(
      refused(JSON.stringify(json).replaceAll(HTTP, "data:image/png;base64,AAAA"), DATA),
      undefined,
    );
    equal(refused(JSON.stringify(json), PUBLIC), param);
    equal(
      refused(JSON.stringify(json).replaceAll(HTTP, "https://img.example/a.png"), HOSTS),
      undefined,
    );
  });
}

Deno.test("refusedMedia() finds a URL however it is spelt", () => {
  const spelt = [
    image(HTTP).replaceAll("image_url", "image\\u005furl"),
    image(HTTP).replaceAll("image_url", "image_\\u0075rl"),
    image(HTTP).replaceAll("image_url", "image_u\\u0072l"),
    image(HTTP).replaceAll("http:", "\\u0068ttp:"),
    image("file:///etc/passwd"),
    image("//169.254.169.254/x"),
    image(" data:image/png;base64,AAAA"),
    image("ftp://example.org/x"),
  ];
  for (const json of spelt) equal(refused(json, DATA), "messages", json);
});

Deno.test("refusedMedia() is not led astray by what looks like the end of a data: URL", () => {
  const long = "A".repeat(2_000);
  const hidden = `{"messages":[{"text":";base64,${long}\\",\\"x"},{"image_url":"${HTTP}"}]}`;
  equal(refused(hidden, DATA), "messages");
  const quoted = `{"messages":[{"text":";base64,${long}\\"}","x":[{"image_url":"${HTTP}"}]}]}`;
  equal(refused(quoted, DATA), "messages");
  const images = Array.from({ length: 3 }, () => `{"image_url":"data:image/png;base64,${long}"}`);
  equal(refused(`{"messages":[${images.join(",")}]}`, DATA), undefined);
  equal(refused(`{"messages":[${images.join(",")},{"image_url":"${HTTP}"}]}`, DATA), "messages");
});

Deno.test("refusedMedia() leaves alone what nobody fetches", () => {
  const harmless = [
    { messages: [{ content: `look at ${HTTP}, its image_url` }] },
    { messages: [{ content: [{ type: "text", text: `image_url ${HTTP}` }] }] },
    { tools: [{ function: { parameters: { properties: { image_url: { default: HTTP } } } } }] },
    { response_format: { json_schema: { schema: { image_url: HTTP } } } },
    { metadata: { image_url: HTTP } },
    { input: [{ content: [{ annotations: [{ type: "url", url: HTTP }] }] }] },
    { messages: [{ content: [{ image_url: null }] }] },
    { prompt: "url" },
  ];
  for (const json of harmless) equal(refused(JSON.stringify(json), DATA), undefined);
});

Deno.test("refusedMedia() fetches from the hosts that a policy allows", () => {
  const cases: [url: string, policy: MediaUrlPolicy, allowed: boolean][] = [
    ["https://img.example/a", HOSTS, true],
    ["http://IMG.example:8080/a", HOSTS, true],
    ["https://a.cdn.example/a", HOSTS, true],
    ["https://cdn.example/a", HOSTS, false],
    ["https://xcdn.example/a", HOSTS, false],
    ["https://img.example.evil/a", HOSTS, false],
    ["https://img.example@evil.example/a", HOSTS, false],
    ["https://evil.example\\@img.example/", HOSTS, false],
    ["https://img.example /a", HOSTS, false],
    ["https://www.example.org/a", PUBLIC, true],
    ["https://example.org./a", PUBLIC, true],
    ["http://localhost/a", PUBLIC, false],
    ["http://gpu-7/a", PUBLIC, false],
    ["http://gpu-7.internal/a", PUBLIC, false],
    ["http://127.0.0.1/a", PUBLIC, false],
    ["http://0x7f.1/a", PUBLIC, false],
    ["http://2130706433/a", PUBLIC, false],
    ["http://[::1]/a", PUBLIC, false],
    ["http://[::ffff:169.254.169.254]/a", PUBLIC, false],
    ["http://10.0.0.5/a", PUBLIC, false],
    ["file:///etc/passwd", PUBLIC, false],
  ];
  for (const [url, policy, allowed] of cases) {
    equal(refused(image(url), policy), allowed ? undefined : "messages", url);
  }
});
