import assert from "node:assert/strict";
import fc from "fast-check";
import { boundaryOf } from "./content_type.ts";
import { FormScanner } from "./form_scan.ts";

const bytesOf = (text: string) => Uint8Array.from(text, (char) => char.charCodeAt(0));

function field(name: string, value: string, more = ""): string {
  return `--B\r\nContent-Disposition: form-data; name="${name}"${more}\r\n\r\n${value}\r\n`;
}

function scan(text: string, cuts: readonly number[] = []) {
  const bytes = bytesOf(text);
  const scanner = new FormScanner("B");
  let from = 0;
  for (const to of [...cuts, bytes.length]) {
    scanner.push(bytes.subarray(from, to));
    from = to;
  }
  return scanner.end();
}

function parts(text: string, cuts: readonly number[] = []) {
  const form = scan(text, cuts);
  if (form.kind === "invalid") throw new Error(form.detail);
  return form.parts;
}

const FILE = field("file", "\r\n--A\r\n--b-\r--Bx\0\xff", '; filename="a.wav"');
const FORM = FILE + field("model", "m") + field("empty", "") + "--B--\r\n";

Deno.test("FormScanner finds every part, wherever the body is cut", () => {
  const whole = parts(FORM);
  assert.deepEqual(whole.map(({ name, isFile, text }) => [name, isFile, text]), [
    ["file", true, undefined],
    ["model", false, "m"],
    ["empty", false, ""],
  ]);
  const [file] = whole;
  assert.equal(FORM.slice(file?.bodyStart, file?.bodyEnd), "\r\n--A\r\n--b-\r--Bx\0\xff");
  for (const { start, end } of whole) {
    assert.equal(FORM.slice(start, start + 3), "--B");
    assert.equal(FORM.slice(end, end + 3), "--B");
  }
  for (let cut = 0; cut <= FORM.length; cut++) assert.deepEqual(parts(FORM, [cut]), whole);
  const every = Array.from({ length: FORM.length }, (_, index) => index);
  assert.deepEqual(parts(FORM, every), whole);
});

Deno.test("FormScanner finds what was put in, for any content and any cuts", () => {
  const content = fc.array(
    fc.constantFrom("\r", "\n", "-", "--B", "\r\n--", "x", "\0"),
    { maxLength: 12 },
  ).map((pieces) => pieces.join("")).filter((text) => !`\r\n${text}`.includes("\r\n--B"));
  fc.assert(
    fc.property(
      fc.array(content, { maxLength: 4 }),
      fc.array(fc.nat(400), { maxLength: 6 }),
      (bodies, places) => {
        const text = bodies.map((body) => field("f", body)).join("") + field("model", "m") +
          "--B--";
        const cuts = places.filter((place) => place < text.length).sort((a, b) => a - b);
        const found = parts(text, cuts);
        assert.deepEqual(found.map((part) => text.slice(part.bodyStart, part.bodyEnd)), [
          ...bodies,
          "m",
        ]);
        assert.deepEqual(found.at(-1)?.text, "m");
      },
    ),
    { numRuns: 300 },
  );
});

Deno.test("FormScanner keeps no text of what is too long for a field", () => {
  const [prompt] = parts(field("prompt", "x".repeat(1_025)) + "--B--", [500, 900]);
  assert.equal(prompt?.text, undefined);
});

const BAD: readonly [what: string, text: string][] = [
  ["nothing", ""],
  ["a preamble", `x\r\n${FORM}`],
  ["another boundary", "--C\r\n"],
  ["no last boundary", FILE],
  ["half a last boundary", FILE + "--B-"],
  ["something after a boundary", "--B \r\n"],
  ["a bare LF after a boundary", "--B\nContent-Disposition: form-data; name=x\n\n\n--B--"],
  ["a part without a head", "--B\r\n\r\nx\r\n--B--"],
  ["a part without a name", "--B\r\nContent-Disposition: form-data\r\n\r\nx\r\n--B--"],
  ["a head without end", `--B\r\nX: ${"x".repeat(9_000)}`],
  ["another disposition", "--B\r\nContent-Disposition: attachment; name=x\r\n\r\n\r\n--B--"],
  ["two names", field("a", "", '; name="b"') + "--B--"],
  [
    "two dispositions",
    field("a", "").replace("\r\n\r\n", '\r\nContent-Disposition: form-data; name="b"\r\n\r\n') +
    "--B--",
  ],
  ["an encoded name", field("a", "", "; name*=utf-8''model") + "--B--"],
  ["an escaped name", field('mod\\"el', "") + "--B--"],
  ["a percent sign in a name", field("mod%65l", "") + "--B--"],
  ["a quote in a file's name", field("file", "", '; filename="a\\"; name=\\"b"') + "--B--"],
  ["a line that is folded", '--B\r\nContent-Disposition: form-data;\r\n name="x"\r\n\r\n\r\n--B--'],
  [
    "an encoded part",
    field("model", "bQ==").replace("\r\n\r\n", "\r\nContent-Transfer-Encoding: base64\r\n\r\n") +
    "--B--",
  ],
  ["too many parts", field("f", "").repeat(200) + "--B--"],
];

for (const [what, text] of BAD) {
  Deno.test(`FormScanner refuses ${what}`, () => {
    assert.equal(scan(text).kind, "invalid");
    assert.equal(scan(text, [1, 5, 9].filter((at) => at < text.length)).kind, "invalid");
  });
}

Deno.test("FormScanner reads the spellings of clients", () => {
  for (
    const head of [
      "content-disposition: form-data; name=model",
      'CONTENT-DISPOSITION: FORM-DATA;name="model"',
      'Content-Disposition: form-data; name="model"\r\nContent-Type: text/plain; charset=utf-8',
      'Content-Type: text/plain\r\nContent-Disposition: form-data; name="model"\r\nContent-Length: 1',
      'Content-Disposition: form-data; name="model"\r\nContent-Transfer-Encoding: binary',
    ]
  ) {
    const [part] = parts(`--B\r\n${head}\r\n\r\nm\r\n--B--\r\n`);
    assert.deepEqual([part?.name, part?.text, part?.isFile], ["model", "m", false], head);
  }
  const odd = "; filename=\"a;\\ name=x; é.wav\"; filename*=UTF-8''a.wav";
  assert.equal(parts(field("file", "", odd) + "--B--")[0]?.isFile, true);
});

Deno.test("boundaryOf() reads the boundary of a form and of nothing else", () => {
  for (
    const [type, want] of [
      ["multipart/form-data; boundary=----fx7", "----fx7"],
      ['Multipart/Form-Data;boundary="a b"', "a b"],
      ["multipart/form-data; boundary=x; charset=utf-8", "x"],
      ["multipart/form-data", undefined],
      ["multipart/form-data; boundary=", undefined],
      ['multipart/form-data; boundary="a "', undefined],
      ["multipart/form-data; boundary=a; boundary=b", undefined],
      [`multipart/form-data; boundary=${"x".repeat(71)}`, undefined],
      ["multipart/mixed; boundary=a", undefined],
      ["application/json", undefined],
      ["", undefined],
    ] as const
  ) assert.equal(boundaryOf(type), want, type);
});
