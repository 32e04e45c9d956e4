import assert from "node:assert/strict";
import { createSseFramer } from "./sse.ts";
import type { SseEvent } from "./sse_event.ts";

const encoder = new TextEncoder();
const decoder = new TextDecoder("utf-8", { ignoreBOM: true });

function frame(...chunks: (string | Uint8Array)[]): SseEvent[] {
  const framer = createSseFramer();
  const events = chunks.flatMap((chunk) =>
    framer.push(typeof chunk === "string" ? encoder.encode(chunk) : chunk)
  );
  const rest = framer.end();
  return rest === undefined ? events : [...events, rest];
}

function texts(events: readonly SseEvent[]): string[] {
  return events.map((event) => decoder.decode(event.raw));
}

const ONE_EVENT: readonly [what: string, raw: string, data: string, name: string][] = [
  ["LF", "data: a\n\n", "a", ""],
  ["CRLF", "data: a\r\n\r\n", "a", ""],
  ["CR", "data: a\r\r", "a", ""],
  ["no space", "data:a\n\n", "a", ""],
  ["two spaces keep one", "data:  a\n\n", " a", ""],
  ["several lines", "data: a\ndata: b\ndata\n\n", "a\nb\n", ""],
  ["several lines, mixed ends", "data: a\rdata: b\r\ndata: c\n\n", "a\nb\nc", ""],
  ["a name", "event: error\ndata: a\n\n", "a", "error"],
  ["a comment inside", ": x\ndata: a\n\n", "a", ""],
  ["a field that only begins like data", "dataset: x\ndata: a\n\n", "a", ""],
  ["characters of several bytes", "data: 日本🙂\n\n", "日本🙂", ""],
  ["U+FEFF inside", "data: \ufeffa\n\n", "\ufeffa", ""],
];

for (const [what, raw, data, name] of ONE_EVENT) {
  Deno.test(`createSseFramer() reads one event: ${what}`, () => {
    const events = frame(raw);
    assert.equal(events.length, 1);
    assert.deepEqual(texts(events), [raw]);
    assert.equal(events[0]?.data, data);
    assert.equal(events[0]?.name, name);
    assert.equal(events[0]?.complete, true);
    assert.equal(events[0]?.isSilent, false);
  });
}

Deno.test("createSseFramer() gives an event as soon as its empty line is there", () => {
  const framer = createSseFramer();
  assert.equal(framer.push(encoder.encode("data: a\n")).length, 0);
  assert.equal(framer.push(encoder.encode("\n")).length, 1);
  assert.equal(framer.push(encoder.encode("data: b\r")).length, 0);
  assert.equal(framer.push(encoder.encode("\r")).length, 1, "a stream in CR is not held back");
  assert.equal(framer.push(encoder.encode("data: c\r\n\r")).length, 0, "the LF is still to come");
  assert.deepEqual(texts(framer.push(encoder.encode("\n"))), ["data: c\r\n\r\n"]);
  assert.equal(framer.pendingBytes, 0);
});

Deno.test("createSseFramer() keeps CRLF together when the cut is between", () => {
  assert.deepEqual(
    texts(frame("data: a\r", "\n\r", "\ndata: b\r", "\n", "\r\n")),
    ["data: a\r\n\r\n", "data: b\r\n\r\n"],
  );
});

Deno.test("createSseFramer() ends an event in CRLF CR when no LF follows", () => {
  assert.deepEqual(texts(frame("data: a\r\n\rdata: b\n\n")), ["data: a\r\n\r", "data: b\n\n"]);
  const [last] = frame("data: a\r\n\r");
  assert.equal(last?.complete, true);
});

Deno.test("createSseFramer() returns what broke off as incomplete", () => {
  const [whole, rest, ...none] = frame('data: a\n\ndata: {"x', '":1');
  assert.equal(whole?.complete, true);
  assert.equal(rest?.complete, false);
  assert.equal(rest?.data, '{"x":1');
  assert.equal(none.length, 0);
  assert.equal(createSseFramer().end(), undefined);
});

const SILENT: readonly [what: string, raw: string, comment: boolean][] = [
  ["a comment", ": ping\n\n", true],
  ["an empty comment", ":\n\n", true],
  ["comments in CRLF", ": a\r\n: b\r\n\r\n", true],
  ["a comment and a field", ": a\nretry: 5\n\n", false],
  ["empty data", "data:\n\n", false],
  ["blank data", "data: \n\n", false],
  ["data without a colon", "data\n\n", false],
  ["a name alone", "event: ping\n\n", false],
  ["an id alone", "id: 1\n\n", false],
  ["a blank line", "\n", false],
  ["a byte order mark", "\ufeff", false],
];

for (const [what, raw, comment] of SILENT) {
  Deno.test(`createSseFramer() knows that a client should not see: ${what}`, () => {
    const [event, ...more] = frame(raw, "data: x\n\n");
    assert.deepEqual(texts(more), ["data: x\n\n"]);
    assert.equal(event?.isSilent, true);
    assert.equal(event?.isComment, comment);
  });
}

Deno.test("createSseFramer() sets a byte order mark apart, even cut in three", () => {
  const bytes = encoder.encode("\ufeffdata: a\n\n");
  const cut = frame(bytes.subarray(0, 1), bytes.subarray(1, 2), bytes.subarray(2));
  assert.deepEqual(texts(cut), ["\ufeff", "data: a\n\n"]);
  assert.equal(cut[1]?.data, "a");
});

Deno.test("createSseFramer() takes half a byte order mark for what it is: content", () => {
  const events = frame(new Uint8Array([0xef, 0xbb]), "\n\ndata: a\n\n");
  assert.equal(events.length, 2);
  assert.equal(events[1]?.data, "a");
});

Deno.test("createSseFramer() knows [DONE] however it is spaced", () => {
  for (const raw of ["data: [DONE]\n\n", "data:[DONE]\r\n\r\n", "data: [DONE] \n\n"]) {
    assert.equal(frame(raw)[0]?.isDone, true);
  }
  assert.equal(frame('data: "[DONE]"\n\n')[0]?.isDone, false);
});

Deno.test("createSseFramer() joins a giant event once, whatever the cuts", () => {
  const framer = createSseFramer();
  const piece = encoder.encode("x".repeat(64));
  framer.push(encoder.encode("data: "));
  for (let n = 0; n < 131_072; n++) assert.equal(framer.push(piece).length, 0);
  assert.equal(framer.pendingBytes, 8_388_608 + 6);
  const [event] = framer.push(encoder.encode("\n\n"));
  assert.equal(event?.raw.length, 8_388_608 + 8);
  assert.equal(event?.data?.length, 8_388_608);
});
