import assert from "node:assert/strict";
import fc from "fast-check";
import { createSseFramer } from "./sse.ts";

const PIECES = [
  "data: ",
  "data:",
  "data",
  "event: error",
  "id: 1",
  "retry: 5",
  ": x",
  ":",
  "a",
  "é🙂",
  "[DONE]",
  "\n",
  "\r",
  "\r\n",
  "\n\n",
  "\r\r",
  "\r\n\r\n",
  "\ufeff",
  "\0",
  " ",
];

const stream = fc.oneof(
  fc.array(fc.constantFrom(...PIECES), { maxLength: 40 }).map((p) =>
    new TextEncoder().encode(p.join(""))
  ),
  fc.uint8Array({ maxLength: 120 }),
  fc.array(fc.constantFrom(10, 13, 58, 97, 0xef, 0xbb, 0xbf), { maxLength: 40 }).map((bytes) =>
    Uint8Array.from(bytes)
  ),
);

interface Seen {
  readonly raw: string;
  readonly name: string;
  readonly data: string | undefined;
  readonly complete: boolean;
}

function events(bytes: Uint8Array, cuts: readonly number[]): Seen[] {
  const framer = createSseFramer();
  const seen: Seen[] = [];
  const places = [...new Set(cuts.map((cut) => cut % (bytes.length + 1)))].sort((a, b) => a - b);
  let from = 0;
  for (const to of [...places, bytes.length]) {
    // A copy, as a socket would give: nothing may depend on the chunks' shared memory.
    seen.push(...framer.push(bytes.slice(from, to)).map(look));
    from = to;
  }
  const rest = framer.end();
  return rest === undefined ? seen : [...seen, look(rest)];
}

function look(
  event: { raw: Uint8Array; name: string; data: string | undefined; complete: boolean },
): Seen {
  const { raw, name, data, complete } = event;
  return { raw: raw.toString(), name, data, complete };
}

/** The standard's own way, on the whole text at once: what a client would dispatch. */
function dispatched(bytes: Uint8Array): { name: string; data: string }[] {
  const lines = new TextDecoder().decode(bytes).replaceAll("\r\n", "\n").replaceAll("\r", "\n")
    .split("\n");
  lines.pop();
  const out: { name: string; data: string }[] = [];
  let data: string[] = [];
  let name = "";
  for (const line of lines) {
    if (line === "") {
      if (data.length > 0) out.push({ name, data: data.join("\n") });
      data = [];
      name = "";
      continue;
    }
    const colon = line.indexOf(":");
    const field = colon < 0 ? line : line.slice(0, colon);
    const value = colon < 0 ? "" : line.slice(colon + 1).replace(/^ /, "");
    if (field === "data") data.push(value);
    if (field === "event") name = value;
  }
  return out;
}

Deno.test("property: every cut gives the same events, and their bytes are the input", () => {
  fc.assert(
    fc.property(stream, fc.array(fc.nat(200), { maxLength: 30 }), (bytes, cuts) => {
      const whole = events(bytes, []);
      assert.deepEqual(events(bytes, cuts), whole);
      assert.equal(
        whole.map((event) => event.raw).filter((raw) => raw !== "").join(","),
        bytes.toString(),
      );
    }),
    { numRuns: 10_000 },
  );
});

Deno.test("property: a client would dispatch the same events as from the standard's algorithm", () => {
  fc.assert(
    fc.property(stream, (bytes) => {
      const ours = events(bytes, []).filter((event) => event.complete && event.data !== undefined)
        .map(({ name, data }) => ({ name, data }));
      assert.deepEqual(ours, dispatched(bytes));
    }),
    { numRuns: 10_000 },
  );
});
