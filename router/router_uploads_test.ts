/** Forms with a file: sent on as they came, whatever their size, also to a second engine. */
import { Buffer } from "node:buffer";
import { createHash } from "node:crypto";
import http from "node:http";
import { connect } from "node:net";
import { gzipSync, zstdCompressSync } from "node:zlib";
import { deepEqual, equal, match, ok } from "node:assert/strict";
import { endpointsAt, runRouter } from "./testing/running_router.ts";

const BOUNDARY = "----fx7";
const TYPE = `multipart/form-data; boundary=${BOUNDARY}`;
const PATH = "/v1/audio/transcriptions";

interface Upload {
  readonly path: string;
  readonly type: string;
  readonly bytes: Uint8Array;
}

interface UploadEngine extends AsyncDisposable {
  readonly url: string;
  readonly uploads: Upload[];
}

/** An engine that answers `status` to what it was sent. */
async function startUploadEngine(
  answer: (upload: Upload, response: http.ServerResponse) => void,
): Promise<UploadEngine> {
  const uploads: Upload[] = [];
  const server = http.createServer(async (request, response) => {
    const parts: Uint8Array[] = [];
    try {
      for await (const part of request) parts.push(part);
    } catch {
      return;
    }
    const type = request.headers["content-type"] ?? "";
    const upload = { path: request.url ?? "", type, bytes: Buffer.concat(parts) };
    uploads.push(upload);
    answer(upload, response);
  });
  await new Promise<void>((resolve) => server.listen({ host: "127.0.0.1", port: 0 }, resolve));
  const bound = server.address();
  return {
    url: `http://127.0.0.1:${typeof bound === "object" ? bound?.port : 0}`,
    uploads,
    [Symbol.asyncDispose]() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

function sendJson(response: http.ServerResponse, status: number, value: unknown): void {
  response.writeHead(status, { "content-type": "application/json" }).end(JSON.stringify(value));
}

/** A form with the file first and the model last, as some clients send it. */
function form(file: Uint8Array, model = "m", more = ""): Uint8Array<ArrayBuffer> {
  const head =
    `--${BOUNDARY}\r\nContent-Disposition: form-data; name="file"; filename="a.wav"\r\n` +
    `Content-Type: audio/wav\r\n\r\n`;
  const tail = `\r\n--${BOUNDARY}\r\nContent-Disposition: form-data; name="model"\r\n\r\n${model}` +
    `\r\n${more}--${BOUNDARY}--\r\n`;
  return new Uint8Array(Buffer.concat([Buffer.from(head), file, Buffer.from(tail)]));
}

function field(name: string, value: string): string {
  return `--${BOUNDARY}\r\nContent-Disposition: form-data; name="${name}"\r\n\r\n${value}\r\n`;
}

const noise = (bytes: number) =>
  new Uint8Array(bytes).map((_, at) => (at * 7919 + (at >> 8) * 31) & 0xff);

const hash = (bytes: Uint8Array) => createHash("sha256").update(bytes).digest("hex");

async function withState(test: (state: string) => Promise<void>): Promise<void> {
  const state = await Deno.makeTempDir();
  try {
    await test(state);
  } finally {
    await Deno.remove(state, { recursive: true });
  }
}

function post(router: { readonly url: string }, body: BodyInit, type = TYPE, path = PATH) {
  return fetch(router.url + path, { method: "POST", headers: { "content-type": type }, body });
}

Deno.test("an upload reaches the engine as it came, but for the model's name", () =>
  withState(async (state) => {
    await using engine = await startUploadEngine((_, response) =>
      sendJson(response, 200, { text: "one two", usage: { type: "duration", seconds: 3 } })
    );
    await using router = await runRouter({
      state_directory: state,
      endpoints: endpointsAt(engine.url),
    });
    for (const size of [0, 10, 300_000, 3_000_000]) {
      const file = noise(size);
      const response = await post(router, form(file));
      deepEqual([response.status, (await response.json()).text], [200, "one two"]);
      const upload = engine.uploads.at(-1);
      equal(upload?.type, TYPE);
      equal(hash(upload?.bytes ?? new Uint8Array()), hash(form(file, "served")), `${size}`);
    }
    const record = await router.record(4);
    deepEqual([record.route, record.model, record.estimated], ["transcriptions", "m", true]);
    deepEqual([...Deno.readDirSync(`${state}/uploads`)], []);
  }));

Deno.test("an upload that one engine failed on is sent whole to the next one", () =>
  withState(async (state) => {
    await using bad = await startUploadEngine((_, response) => response.socket?.destroy());
    await using good = await startUploadEngine((_, response) =>
      sendJson(response, 200, { text: "x" })
    );
    await using router = await runRouter({
      state_directory: state,
      endpoints: endpointsAt(bad.url, good.url).map((endpoint, index) => ({
        ...endpoint,
        priority: 1 - index,
      })),
    });
    const file = noise(1_000_000);
    const response = await post(router, form(file));
    equal(response.status, 200);
    await response.body?.cancel();
    equal(bad.uploads.length, 1);
    equal(hash(good.uploads[0]?.bytes ?? new Uint8Array()), hash(form(file, "served")));
  }));

Deno.test("an engine that refuses an upload before it has read it is heard", () =>
  withState(async (state) => {
    const server = http.createServer((_, response) =>
      sendJson(response, 413, { detail: "too big" })
    );
    await new Promise<void>((resolve) => server.listen({ host: "127.0.0.1", port: 0 }, resolve));
    const bound = server.address();
    const port = typeof bound === "object" ? bound?.port : 0;
    await using router = await runRouter({
      state_directory: state,
      endpoints: endpointsAt(`http://127.0.0.1:${port}`),
    });
    const response = await post(router, form(noise(8_000_000)));
    ok([413, 502].includes(response.status), `${response.status}`);
    await response.body?.cancel();
    equal(await router.metric("heddle_router_requests_in_flight"), 0);
    server.closeAllConnections();
    await new Promise((resolve) => server.close(resolve));
  }));

Deno.test("transcripts come as streams, as subtitles, and as plain words", () =>
  withState(async (state) => {
    const events = 'event: transcript.text.delta\ndata: {"type":"transcript.text.delta",' +
      '"delta":"one"}\n\nevent: transcript.text.done\ndata: {"type":"transcript.text.done",' +
      '"text":"one","usage":{"type":"tokens","input_tokens":14,"output_tokens":2}}\n\n';
    await using engine = await startUploadEngine((upload, response) => {
      const text = Buffer.from(upload.bytes).toString("latin1");
      const [type, body] = text.includes('name="stream"')
        ? ["text/event-stream", events]
        : text.includes("vtt")
        ? ["text/vtt; charset=utf-8", "WEBVTT\n"]
        : ["text/html", "<p>"];
      response.writeHead(200, { "content-type": type }).end(body);
    });
    await using router = await runRouter({
      state_directory: state,
      endpoints: endpointsAt(engine.url),
    });
    const ask = (more: string, path?: string) =>
      post(router, form(noise(10), "m", more), TYPE, path);
    const stream = await ask(field("stream", "true"), "/v1/audio/translations");
    match(stream.headers.get("content-type") ?? "", /^text\/event-stream/);
    equal(await stream.text(), events);
    deepEqual((await router.record(1)).usage, { promptTokens: 14, completionTokens: 2 });
    equal(engine.uploads[0]?.path, "/v1/audio/translations");
    const vtt = await ask(field("response_format", "vtt"));
    deepEqual([vtt.headers.get("content-type"), await vtt.text()], [
      "text/vtt; charset=utf-8",
      "WEBVTT\n",
    ]);
    const page = await ask("");
    equal(page.status, 502);
    await page.body?.cancel();
  }));

Deno.test("forms that cannot be served are refused, naming what is wrong", () =>
  withState(async (state) => {
    await using router = await runRouter({
      state_directory: state,
      endpoints: endpointsAt("http://127.0.0.1:1"),
      bodies: { upload_max: "1MiB", uploads_max: "300KiB" },
    });
    const ask = async (body: BodyInit, type?: string, headers: Record<string, string> = {}) => {
      const response = await fetch(router.url + PATH, {
        method: "POST",
        headers: { "content-type": type ?? TYPE, ...headers },
        body,
      });
      return [response.status, (await response.json()).error.code];
    };
    deepEqual(await ask("{}", "application/json"), [400, "invalid_request"]);
    deepEqual(await ask("{}"), [400, "invalid_request"]);
    deepEqual(await ask(form(noise(4), "")), [400, "invalid_request"]);
    deepEqual(await ask(form(noise(4), "nope")), [404, "model_not_found"]);
    deepEqual(await ask(form(noise(4)), TYPE, { "content-encoding": "br" }), [
      415,
      "encoding_unsupported",
    ]);
    for (const coding of ["gzip", "zstd"]) {
      const packed = { "content-encoding": coding };
      deepEqual(await ask(form(noise(4)), TYPE, packed), [400, "encoding_corrupt"]);
    }
    const cut = new Uint8Array(gzipSync(form(noise(4_000)))).slice(0, -9);
    deepEqual(await ask(cut, TYPE, { "content-encoding": "gzip" }), [400, "encoding_corrupt"]);
    const bomb = new Uint8Array(gzipSync(form(new Uint8Array(2_000_000))));
    // Whichever bound it meets first: what all uploads may hold is the smaller one here.
    deepEqual(await ask(bomb, TYPE, { "content-encoding": "gzip" }), [503, "upload_unkept"]);
    const nothing = gzipSync(new Uint8Array(0));
    const much = new Uint8Array(Buffer.concat(Array(60_000).fill(nothing)));
    const chunks = new Blob([much]).stream();
    deepEqual(await ask(chunks, TYPE, { "content-encoding": "gzip" }), [413, "body_too_large"]);
    deepEqual(await ask(form(noise(1_100_000))), [413, "body_too_large"]);
    deepEqual(await ask(form(noise(800_000))), [503, "upload_unkept"]);
    const method = await fetch(`${router.url}${PATH}`);
    equal(method.status, 405);
    await method.body?.cancel();
  }));

Deno.test("a form that comes packed goes on plain", () =>
  withState(async (state) => {
    await using engine = await startUploadEngine((_, response) =>
      sendJson(response, 200, { text: "hello" })
    );
    await using router = await runRouter({
      state_directory: state,
      endpoints: endpointsAt(engine.url),
    });
    const plain = form(noise(900_000));
    const ways = { gzip: gzipSync(plain), zstd: zstdCompressSync(plain) };
    for (const [coding, bytes] of Object.entries(ways)) {
      const response = await fetch(router.url + PATH, {
        method: "POST",
        headers: { "content-type": TYPE, "content-encoding": coding },
        body: new Uint8Array(bytes),
      });
      deepEqual([response.status, await response.json()], [200, { text: "hello" }], coding);
      const upload = engine.uploads.at(-1);
      deepEqual(
        [upload?.type, hash(upload?.bytes ?? plain)],
        [TYPE, hash(form(noise(900_000), "served"))],
        coding,
      );
    }
  }));

for (const coding of ["identity", "gzip"]) {
  Deno.test(`a client that leaves in the middle of an upload (${coding}) leaves nothing behind`, () =>
    leaves(coding));
}

const leaves = (coding: string): Promise<void> =>
  withState(async (state) => {
    await using engine = await startUploadEngine(() => {});
    await using router = await runRouter({
      state_directory: state,
      endpoints: endpointsAt(engine.url),
    });
    const plain = form(crypto.getRandomValues(new Uint8Array(65_536)));
    const whole = form(noise(2_000_000));
    const body = coding === "gzip" ? gzipSync(plain, { level: 0 }) : whole;
    const socket = connect({ host: "127.0.0.1", port: Number(new URL(router.url).port) });
    const head = `POST ${PATH} HTTP/1.1\r\nhost: x\r\ncontent-type: ${TYPE}\r\n` +
      `content-encoding: ${coding}\r\ncontent-length: ${body.length}\r\n\r\n`;
    await new Promise<void>((resolve) => socket.write(head, () => resolve()));
    await new Promise<void>((resolve) =>
      socket.write(body.subarray(0, body.length / 2), () => resolve())
    );
    socket.destroy();
    const record = await router.record(1);
    match(record.outcome, /^(client_closed|body_cut)$/);
    equal(record.tries, 0);
    equal(engine.uploads.length, 0);
  });
