import { Buffer } from "node:buffer";
import assert from "node:assert/strict";
import fc from "fast-check";
import { startFakeEngine } from "./upstream_engine_fake.ts";
import { createUpstreamPool, UPSTREAM_DEFAULTS } from "./upstream.ts";
import { UpstreamError } from "./upstream_error.ts";

const OK = "HTTP/1.1 200 OK\r\n";
const pieces = fc.array(
  fc.oneof(
    fc.constantFrom(
      `${OK}content-length: 3\r\n\r\nabc`,
      `${OK}transfer-encoding: chunked\r\n\r\n`,
      `${OK}\r\n`,
      "HTTP/1.1 100 Continue\r\n\r\n",
      "3\r\nabc\r\n",
      "0\r\n\r\n",
      "\r\n",
      "x",
    ),
    fc.uint8Array({ maxLength: 30 }).map((bytes) => Buffer.from(bytes).toString("latin1")),
  ),
  { maxLength: 8 },
);

/** How the engine leaves, and what the client does meanwhile. */
const engineEnds = fc.constantFrom("end", "reset", "stay");
const clientDoes = fc.constantFrom("read", "leave", "abort", "destroy", "nothing");

Deno.test("property: over real sockets every answer ends, and nothing stays behind", async () => {
  let script: { pieces: string[]; end: string } = { pieces: [], end: "end" };
  await using engine = await startFakeEngine(({ socket }) => {
    for (const piece of script.pieces) socket.write(Buffer.from(piece, "latin1"));
    if (script.end === "end") socket.end();
    if (script.end === "reset") socket.resetAndDestroy();
  });
  using pool = createUpstreamPool({
    ...UPSTREAM_DEFAULTS,
    firstByteTimeoutMs: 20,
    idleTimeoutMs: 20,
    headBytesMax: 400,
  });
  const target = { host: "127.0.0.1", port: engine.port };
  await fc.assert(
    fc.asyncProperty(pieces, engineEnds, clientDoes, async (parts, end, client) => {
      script = { pieces: parts, end };
      const abort = new AbortController();
      try {
        const answer = await pool.request(
          target,
          { method: "POST", path: "/", headers: {}, body: Buffer.from("{}") },
          abort.signal,
        );
        if (client === "abort") abort.abort();
        if (client === "destroy" || client === "nothing") answer.destroy();
        if (client !== "nothing") {
          for await (const _ of answer.body) if (client === "leave") break;
        }
      } catch (error) {
        assert.ok(error instanceof UpstreamError, String(error));
      }
      assert.equal(pool.connections().busy, 0);
    }),
    { numRuns: 500 },
  );
});
