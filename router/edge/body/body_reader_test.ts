import { Buffer } from "node:buffer";
import assert from "node:assert/strict";
import { createServer, type IncomingMessage } from "node:http";
import fc from "fast-check";
import { connect, type Socket } from "node:net";
import { constants, deflateSync, gzipSync, zstdCompressSync } from "node:zlib";
import { createZstdFrames } from "./frames.ts";
import { declaredSize } from "./zstd.ts";
import { type BodyLimits, type BodyOutcome, readBody } from "./body_reader.ts";

const LIMITS: BodyLimits = { wireBytesMax: 1_000, bodyBytesMax: 5_000 };

/** A server that reads one body; `send` writes to it over raw TCP. */
async function reading(
  send: (socket: Socket) => void,
  limits: BodyLimits = LIMITS,
): Promise<BodyOutcome> {
  const outcome = Promise.withResolvers<BodyOutcome>();
  const server = createServer((request: IncomingMessage, response) => {
    readBody(request, limits).then((read) => {
      response.writeHead(200, { connection: "close" }).end();
      outcome.resolve(read);
    }, outcome.reject);
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const address = server.address();
  assert.ok(address !== null && typeof address === "object");
  const socket = connect({ host: "127.0.0.1", port: address.port });
  socket.on("error", () => {});
  const closed = new Promise((resolve) => socket.on("close", resolve));
  send(socket);
  try {
    return await outcome.promise;
  } finally {
    socket.destroy();
    server.closeAllConnections();
    await closed;
    await new Promise((resolve) => server.close(resolve));
  }
}

function post(body: Uint8Array, encoding?: string): (socket: Socket) => void {
  const coding = encoding === undefined ? "" : `content-encoding: ${encoding}\r\n`;
  return (socket) => {
    socket.write(`POST / HTTP/1.1\r\nhost: x\r\n${coding}content-length: ${body.length}\r\n\r\n`);
    socket.write(body);
  };
}

function chunked(parts: readonly Uint8Array[], encoding?: string): (socket: Socket) => void {
  const coding = encoding === undefined ? "" : `content-encoding: ${encoding}\r\n`;
  return (socket) => {
    socket.write(`POST / HTTP/1.1\r\nhost: x\r\n${coding}transfer-encoding: chunked\r\n\r\n`);
    for (const part of parts) {
      socket.write(`${part.length.toString(16)}\r\n`);
      socket.write(part);
      socket.write("\r\n");
    }
    socket.write("0\r\n\r\n");
  };
}

function text(outcome: BodyOutcome): string {
  assert.ok(outcome.kind === "body", JSON.stringify(outcome));
  return Buffer.from(outcome.bytes).toString();
}

/** Four bytes that say nothing. */
const SKIP = Buffer.from([0x5a, 0x2a, 0x4d, 0x18, 4, 0, 0, 0, 1, 2, 3, 4]);

function frames(...parts: readonly Uint8Array[]): Buffer {
  return Buffer.concat(parts.map((part) => zstdCompressSync(part)));
}

function checked(part: Uint8Array): Buffer {
  return zstdCompressSync(part, { params: { [constants.ZSTD_c_checksumFlag]: 1 } });
}

const PLAIN = Buffer.from('{"a":"é"}');

const GOOD: readonly [what: string, send: (socket: Socket) => void][] = [
  ["a plain body", post(PLAIN)],
  ["identity", post(PLAIN, "identity")],
  ["gzip", post(gzipSync(PLAIN), "gzip")],
  ["GZIP", post(gzipSync(PLAIN), "GZIP")],
  ["zstd", post(zstdCompressSync(PLAIN), "zstd")],
  ["zstd in two frames", post(frames(PLAIN.subarray(0, 4), PLAIN.subarray(4)), "zstd")],
  [
    "zstd in two frames, in chunks of one byte",
    chunked(
      [...frames(PLAIN.subarray(0, 4), PLAIN.subarray(4))].map((b) => Uint8Array.of(b)),
      "zstd",
    ),
  ],
  ["zstd with skippable frames", post(Buffer.concat([SKIP, frames(PLAIN), SKIP]), "zstd")],
  ["zstd with an empty frame", post(frames(new Uint8Array(0), PLAIN), "zstd")],
  ["zstd with a checksum", post(checked(PLAIN), "zstd")],
  ["chunks", chunked([PLAIN.subarray(0, 3), PLAIN.subarray(3)])],
  [
    "gzip in chunks of one byte",
    chunked([...gzipSync(PLAIN)].map((byte) => Uint8Array.of(byte)), "gzip"),
  ],
  [
    "zstd in chunks of one byte",
    chunked([...zstdCompressSync(PLAIN)].map((byte) => Uint8Array.of(byte)), "zstd"),
  ],
];

for (const [what, send] of GOOD) {
  Deno.test(`readBody() reads ${what}`, async () => {
    assert.equal(text(await reading(send)), PLAIN.toString());
  });
}

Deno.test("readBody() reads nothing as nothing, also when it is said to be compressed", async () => {
  assert.equal(text(await reading(post(new Uint8Array(0)))), "");
  assert.equal(text(await reading(post(new Uint8Array(0), "gzip"))), "");
});

const noise = crypto.getRandomValues(new Uint8Array(4_000));
const bomb = new Uint8Array(64 * 2 ** 20).fill(32);

const REFUSED: readonly [
  what: string,
  send: (socket: Socket) => void,
  status: number,
  reason: string,
][] = [
  ["a body that says it is too large", post(noise), 413, "body_too_large"],
  ["a body that turns out too large", chunked([noise]), 413, "body_too_large"],
  ["too large as sent, in gzip", post(gzipSync(noise), "gzip"), 413, "body_too_large"],
  [
    "a gzip bomb",
    chunked([gzipSync(bomb.subarray(0, 500_000))], "gzip"),
    413,
    "body_inflates_too_large",
  ],
  [
    "a zstd bomb",
    post(zstdCompressSync(bomb.subarray(0, 2 ** 20)), "zstd"),
    413,
    "body_inflates_too_large",
  ],
  ["deflate", post(deflateSync(PLAIN), "deflate"), 415, "encoding_unsupported"],
  ["two codings", post(gzipSync(PLAIN), "gzip, gzip"), 415, "encoding_unsupported"],
  ["what is not gzip", post(PLAIN, "gzip"), 400, "encoding_corrupt"],
  ["what is not zstd", post(PLAIN, "zstd"), 400, "encoding_corrupt"],
  [
    "half of a zstd",
    post(zstdCompressSync(PLAIN).subarray(0, 12), "zstd"),
    400,
    "encoding_corrupt",
  ],
  [
    "a zstd whose checksum is missing",
    post(checked(PLAIN).subarray(0, -4), "zstd"),
    400,
    "encoding_corrupt",
  ],
  [
    "something behind a zstd",
    post(Buffer.concat([frames(PLAIN), PLAIN]), "zstd"),
    400,
    "encoding_corrupt",
  ],
  [
    "zstd whose second frame is no good",
    post(Buffer.concat([frames(PLAIN), frames(PLAIN).fill(7, 8)]), "zstd"),
    400,
    "encoding_corrupt",
  ],
  [
    "a zstd bomb in many frames",
    post(frames(...Array(20).fill(bomb.subarray(0, 400))), "zstd"),
    413,
    "body_inflates_too_large",
  ],
  ["half of a gzip", post(gzipSync(PLAIN).subarray(0, 20), "gzip"), 400, "encoding_corrupt"],
];

for (const [what, send, status, reason] of REFUSED) {
  Deno.test(`readBody() refuses ${what}`, async () => {
    const outcome = await reading(send);
    assert.ok(outcome.kind === "refused", "it was read");
    assert.deepEqual([outcome.reason, outcome.status], [reason, status]);
    assert.match(outcome.detail, /^The body.*[^.]$/);
  });
}

Deno.test("readBody() unpacks no more frames of zstd than anyone makes", async () => {
  const many = { wireBytesMax: 2 ** 20, bodyBytesMax: 2 ** 20 };
  const one = zstdCompressSync(Uint8Array.of(32));
  const read = await reading(post(Buffer.concat(Array(1_024).fill(one)), "zstd"), many);
  assert.equal(text(read).length, 1_024);
  const refused = await reading(post(Buffer.concat(Array(1_025).fill(one)), "zstd"), many);
  assert.ok(refused.kind === "refused" && refused.reason === "encoding_corrupt");
});

Deno.test("createZstdFrames() waits for a slow reader, and loses nothing", async () => {
  const large = new Uint8Array(400_000).map((_, at) => (at * 7919) >> 5);
  const packed = frames(large, large.subarray(7));
  const unpacked = createZstdFrames();
  unpacked.end(packed);
  const read: Uint8Array[] = [];
  for await (const part of unpacked) {
    read.push(part);
    await new Promise((resolve) => setImmediate(resolve));
  }
  assert.ok(Buffer.concat(read).equals(Buffer.concat([large, large.subarray(7)])));
});

Deno.test("property: readBody() reads what was packed, however it is split", async () => {
  const limits = { wireBytesMax: 2 ** 20, bodyBytesMax: 2 ** 20 };
  const parts = fc.array(fc.uint8Array({ maxLength: 300, size: "max" }), {
    minLength: 1,
    maxLength: 5,
  });
  await fc.assert(
    fc.asyncProperty(parts, fc.integer({ min: 1, max: 400 }), async (pieces, step) => {
      const packed = frames(...pieces);
      const chunks: Uint8Array[] = [];
      for (let at = 0; at < packed.length; at += step) chunks.push(packed.subarray(at, at + step));
      const outcome = await reading(chunked(chunks, "zstd"), limits);
      assert.ok(outcome.kind === "body");
      assert.deepEqual(Buffer.from(outcome.bytes), Buffer.concat(pieces));
    }),
    { numRuns: 40 },
  );
});

Deno.test("readBody() does not unpack a bomb that says its size", async () => {
  const packed = Deno.readFileSync(
    new URL("../../../tests/fixtures/openai/req/bomb-80MiB-of-spaces.zst", import.meta.url),
  );
  const before = Deno.memoryUsage().rss;
  const outcome = await reading(post(packed, "zstd"), {
    wireBytesMax: 2 ** 20,
    bodyBytesMax: 2 ** 26,
  });
  assert.ok(outcome.kind === "refused");
  assert.equal(outcome.reason, "body_inflates_too_large");
  const grownMib = (Deno.memoryUsage().rss - before) / 2 ** 20;
  assert.ok(grownMib < 16, `memory grew by ${grownMib} MiB`);
});

const SIZES: readonly [what: string, frame: number[], size: number | undefined][] = [
  ["one byte, single segment", [0x20, 7], 7],
  ["two bytes, which begin at 256", [0x40, 0x68, 1, 1], 513],
  ["two bytes, single segment", [0x60, 1, 1], 513],
  ["four bytes behind a window", [0x84, 0x68, 0, 0, 0, 5], 5 * 2 ** 24],
  ["eight bytes", [0xc0, 0x68, 0, 0, 0, 0, 1, 0, 0, 0], 2 ** 32],
  ["a dictionary before it", [0x83, 0x68, 9, 9, 9, 9, 1, 0, 0, 0], 1],
  ["no size", [0x04, 0x68, 1, 1], undefined],
  ["half of a size", [0x84, 0x68, 0, 0], undefined],
  ["nothing", [], undefined],
];

for (const [what, frame, size] of SIZES) {
  Deno.test(`declaredSize() reads ${what}`, () => {
    assert.equal(declaredSize(Uint8Array.from([0x28, 0xb5, 0x2f, 0xfd, ...frame])), size);
  });
}

Deno.test("declaredSize() says nothing of what is not zstd", () => {
  assert.equal(declaredSize(gzipSync("a")), undefined);
});

Deno.test("readBody() reads what looks like a bomb and is within bounds", async () => {
  const large = Buffer.alloc(8 * 2 ** 20, "ab");
  for (
    const [coding, packed] of [["gzip", gzipSync(large)], [
      "zstd",
      zstdCompressSync(large),
    ]] as const
  ) {
    const outcome = await reading(post(packed, coding), {
      wireBytesMax: 2 ** 20,
      bodyBytesMax: 2 ** 24,
    });
    assert.ok(outcome.kind === "body");
    assert.equal(Buffer.compare(outcome.bytes, large), 0);
  }
});

Deno.test("readBody() ends when the client goes away", async () => {
  const outcome = await reading((socket) => {
    socket.write(
      "POST / HTTP/1.1\r\nhost: x\r\ncontent-length: 9\r\n\r\nabc",
      () => socket.destroy(),
    );
  });
  assert.ok(outcome.kind === "refused");
  assert.equal(outcome.reason, "body_cut");
});

Deno.test("readBody() holds a fast client back while it unpacks", async () => {
  const large = Buffer.alloc(32 * 2 ** 20, "ab");
  const outcome = await reading(post(gzipSync(large), "gzip"), {
    wireBytesMax: 2 ** 26,
    bodyBytesMax: 2 ** 26,
  });
  assert.equal(outcome.kind === "body" && outcome.bytes.length, large.length);
});
