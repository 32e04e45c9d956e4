import { Buffer } from "node:buffer";
import assert from "node:assert/strict";
import fc from "fast-check";
import { AnswerParser } from "./upstream_parser.ts";

interface Seen {
  status: number | undefined;
  headers: [string, string][];
  body: string;
  end: string;
  taken: number;
}

/** What a parser makes of `bytes` cut at `cuts`, and the connection's end after them. */
function parse(bytes: Uint8Array, cuts: readonly number[] = [], method = "POST"): Seen {
  const seen: Seen = { status: undefined, headers: [], body: "", end: "open", taken: 0 };
  const end = (what: string): void => {
    assert.equal(seen.end, "open", `told two ends: ${seen.end}, ${what}`);
    seen.end = what;
  };
  const parser = new AnswerParser({
    head(head) {
      assert.equal(seen.status, undefined, "told two heads");
      seen.status = head.status;
      seen.headers = [...head.headers];
    },
    data(data) {
      assert.notEqual(seen.status, undefined, "told a body before its head");
      assert.equal(seen.end, "open", "told a body after its end");
      seen.body += Buffer.from(data).toString("latin1");
    },
    end: () => end("end"),
    fault: (reason) => end(reason),
  }, { method, headBytesMax: 400 });
  let from = 0;
  for (const to of [...cuts, bytes.length]) {
    if (parser.done) break;
    const taken = parser.push(bytes.slice(from, to));
    seen.taken += taken;
    assert.ok(taken === to - from || parser.done);
    from = to;
  }
  parser.eof();
  return seen;
}

function bytesOf(text: string): Uint8Array {
  return Buffer.from(text, "latin1");
}

const OK = "HTTP/1.1 200 OK\r\n";

const GOOD: readonly [what: string, text: string, status: number, body: string][] = [
  ["content-length", `${OK}content-length: 3\r\n\r\nabc`, 200, "abc"],
  ["an empty body", `${OK}content-length: 0\r\n\r\n`, 200, ""],
  ["no length", `${OK}\r\nabc`, 200, "abc"],
  ["no reason phrase", "HTTP/1.1 200 \r\ncontent-length: 1\r\n\r\na", 200, "a"],
  ["no space after the status", "HTTP/1.1 200\r\ncontent-length: 1\r\n\r\na", 200, "a"],
  ["HTTP/1.0", "HTTP/1.0 200 OK\r\ncontent-length: 1\r\n\r\na", 200, "a"],
  ["chunks", `${OK}transfer-encoding: chunked\r\n\r\n1\r\na\r\n2\r\nbc\r\n0\r\n\r\n`, 200, "abc"],
  ["Chunked", `${OK}Transfer-Encoding: Chunked\r\n\r\n1\r\na\r\n0\r\n\r\n`, 200, "a"],
  [
    "hex sizes",
    `${OK}transfer-encoding: chunked\r\n\r\n00A\r\n0123456789\r\n0\r\n\r\n`,
    200,
    "0123456789",
  ],
  ["extensions", `${OK}transfer-encoding: chunked\r\n\r\n1;a=b\r\na\r\n0;c\r\n\r\n`, 200, "a"],
  ["trailers", `${OK}transfer-encoding: chunked\r\n\r\n1\r\na\r\n0\r\nx: y\r\n\r\n`, 200, "a"],
  [
    "interim answers",
    `HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early\r\nlink: x\r\n\r\n${OK}content-length: 1\r\n\r\na`,
    200,
    "a",
  ],
  ["204", "HTTP/1.1 204 No Content\r\n\r\n", 204, ""],
  ["304 with a length", "HTTP/1.1 304 Not Modified\r\ncontent-length: 9\r\n\r\n", 304, ""],
  ["an error", "HTTP/1.1 503 Service Unavailable\r\ncontent-length: 1\r\n\r\na", 503, "a"],
  ["latin-1 in a header", `${OK}x: caf\xe9\r\ncontent-length: 0\r\n\r\n`, 200, ""],
  ["an empty header value", `${OK}x:\r\ncontent-length: 0\r\n\r\n`, 200, ""],
];

for (const [what, text, status, body] of GOOD) {
  Deno.test(`AnswerParser reads ${what}, whole and byte by byte`, () => {
    const bytes = bytesOf(text);
    for (const cuts of [[], Array.from(bytes, (_, index) => index)]) {
      const seen = parse(bytes, cuts);
      assert.deepEqual([seen.status, seen.body, seen.end], [status, body, "end"]);
      assert.equal(seen.taken, bytes.length);
    }
  });
}

const chunked = (rest: string): string => `${OK}transfer-encoding: chunked\r\n\r\n${rest}`;

const BAD: readonly [what: string, text: string, reason: string][] = [
  ["nothing", "", "reset_before_head"],
  ["half a head", `${OK}content-le`, "reset_before_head"],
  ["an interim answer only", "HTTP/1.1 100 Continue\r\n\r\n", "reset_before_head"],
  ["another protocol", "SSH-2.0-OpenSSH\r\n\r\n", "head_invalid"],
  ["HTTP/2", "HTTP/2.0 200 OK\r\n\r\n", "head_invalid"],
  ["a status of four digits", "HTTP/1.1 2000 OK\r\n\r\n", "head_invalid"],
  ["switching protocols", "HTTP/1.1 101 Switching\r\n\r\n", "head_invalid"],
  [
    "length and chunks",
    `${OK}content-length: 1\r\ntransfer-encoding: chunked\r\n\r\n`,
    "head_invalid",
  ],
  ["two lengths", `${OK}content-length: 1\r\ncontent-length: 2\r\n\r\n`, "head_invalid"],
  ["two equal lengths", `${OK}content-length: 1\r\nContent-Length: 1\r\n\r\n`, "head_invalid"],
  ["a list of lengths", `${OK}content-length: 1, 1\r\n\r\n`, "head_invalid"],
  ["a signed length", `${OK}content-length: +1\r\n\r\n`, "head_invalid"],
  ["a hex length", `${OK}content-length: 0x1\r\n\r\n`, "head_invalid"],
  ["a giant length", `${OK}content-length: 9999999999999999\r\n\r\n`, "head_invalid"],
  ["an empty length", `${OK}content-length:\r\n\r\n`, "head_invalid"],
  ["gzip, chunked", `${OK}transfer-encoding: gzip, chunked\r\n\r\n`, "head_invalid"],
  ["xchunked", `${OK}transfer-encoding: xchunked\r\n\r\n`, "head_invalid"],
  [
    "chunked twice",
    `${OK}transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n`,
    "head_invalid",
  ],
  ["chunks in HTTP/1.0", "HTTP/1.0 200 OK\r\ntransfer-encoding: chunked\r\n\r\n", "head_invalid"],
  ["a space before the colon", `${OK}content-length : 1\r\n\r\n`, "head_invalid"],
  ["a folded line", `${OK}x: a\r\n b\r\n\r\n`, "head_invalid"],
  ["a bare LF", `HTTP/1.1 200 OK\ncontent-length: 1\r\n\r\n`, "head_invalid"],
  ["a bare CR", `${OK}x: a\rb\r\n\r\n`, "head_invalid"],
  ["a NUL", `${OK}x: a\0b\r\n\r\n`, "head_invalid"],
  ["a line without a colon", `${OK}x\r\n\r\n`, "head_invalid"],
  ["an empty name", `${OK}: x\r\n\r\n`, "head_invalid"],
  ["a head without end", `${OK}x: ${"a".repeat(500)}`, "head_too_large"],
  ["interim answers without end", "HTTP/1.1 100 Continue\r\n\r\n".repeat(20), "head_too_large"],
  ["a body that is cut", `${OK}content-length: 3\r\n\r\nab`, "cut"],
  ["chunks that are cut", chunked("3\r\nab"), "cut"],
  ["chunks without the last one", chunked("1\r\na\r\n"), "cut"],
  ["a last chunk without end", chunked("0\r\n"), "cut"],
  ["a chunk size that is none", chunked("x\r\n"), "body_invalid"],
  ["an empty chunk size", chunked("\r\n"), "body_invalid"],
  ["a signed chunk size", chunked("-1\r\n"), "body_invalid"],
  ["0x in a chunk size", chunked("0x1\r\na\r\n"), "body_invalid"],
  ["a giant chunk size", chunked("FFFFFFFFFFFFF\r\n"), "body_invalid"],
  ["a chunk size in bare LF", chunked("1\na\r\n"), "body_invalid"],
  ["a chunk longer than its size", chunked("1\r\nab\r\n"), "body_invalid"],
  ["a chunk line without end", chunked("1;".padEnd(2_000, "a")), "body_invalid"],
  ["trailers without end", chunked(`0\r\n${"x: y\r\n".repeat(200)}`), "body_invalid"],
];

for (const [what, text, reason] of BAD) {
  Deno.test(`AnswerParser refuses ${what}, whole and byte by byte`, () => {
    const bytes = bytesOf(text);
    assert.equal(parse(bytes).end, reason);
    assert.equal(parse(bytes, Array.from(bytes, (_, index) => index)).end, reason);
  });
}

Deno.test("AnswerParser joins headers of one name and lowers names", () => {
  const seen = parse(bytesOf(`${OK}X-A: 1 \r\nx-a:2\r\ncontent-length: 0\r\n\r\n`));
  assert.deepEqual(seen.headers, [["x-a", "1, 2"], ["content-length", "0"]]);
});

Deno.test("AnswerParser takes no byte beyond the answer", () => {
  const answer = `${OK}content-length: 1\r\n\r\na`;
  assert.equal(parse(bytesOf(`${answer}HTTP/1.1 200 OK\r\n`)).taken, answer.length);
  const ended = chunked("0\r\n\r\n");
  assert.equal(parse(bytesOf(`${ended}x`)).taken, ended.length);
});

Deno.test("AnswerParser expects no body after HEAD", () => {
  assert.equal(parse(bytesOf(`${OK}content-length: 3\r\n\r\n`), [], "HEAD").end, "end");
});

const pieces = [
  "HTTP/1.1 200 OK",
  "HTTP/1.1 100 Continue",
  "HTTP/1.0 200 OK",
  "HTTP/1.1 204 x",
  "\r\n",
  "\r\n\r\n",
  "\n",
  "\r",
  "content-length: 5",
  "content-length: 0",
  "transfer-encoding: chunked",
  "connection: close",
  "x: y",
  ": ",
  "1",
  "5",
  "a",
  "0",
  ";x",
  "abcde",
  "\0",
  " ",
  "0\r\n\r\n",
  "5\r\nabcde\r\n",
];
const start = fc.constantFrom(
  "",
  `${OK}\r\n`,
  `${OK}content-length: 7\r\n\r\n`,
  chunked(""),
  chunked("5\r\nabcde\r\n"),
);
const answer = fc.oneof(
  fc.tuple(start, fc.array(fc.constantFrom(...pieces), { maxLength: 30 })).map(([head, rest]) =>
    bytesOf(head + rest.join(""))
  ),
  fc.tuple(start, fc.uint8Array({ maxLength: 100 })).map(([head, rest]) =>
    Buffer.concat([bytesOf(head), rest])
  ),
);

Deno.test("property: 10,000 random answers mean the same however they are cut", () => {
  fc.assert(
    fc.property(answer, fc.array(fc.nat(1_000), { maxLength: 40 }), (bytes, cuts) => {
      const places = cuts.map((cut) => cut % (bytes.length + 1)).sort((a, b) => a - b);
      const whole = parse(bytes);
      assert.notEqual(whole.end, "open");
      const cut = parse(bytes, places);
      // After a fault it does not matter how much of the rest was looked at.
      if (whole.end !== "end") cut.taken = whole.taken;
      assert.deepEqual(cut, whole);
    }),
    { numRuns: 10_000 },
  );
});
