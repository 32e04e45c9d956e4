/**
 * A hub for tests: the hub's own API over real HTTP, a second server for large files as the hub's
 * storage is one, and faults that a test orders.
 */
import { createHash } from "node:crypto";
import { createServer, type IncomingMessage, type Server, type ServerResponse } from "node:http";
import { Buffer } from "node:buffer";

export const COMMIT = "0123456789abcdef0123456789abcdef01234567";
/** Smaller files are kept by git itself, larger ones behind a pointer. */
const LARGE_BYTES = 4_096;
/** Files on a page of a listing. */
const PAGE = 3;

/** What happens to one request. */
export type Fault =
  | { readonly kind: "status"; readonly status: number; readonly headers?: Record<string, string> }
  /** The connection is cut after so many bytes of the body. */
  | { readonly kind: "drop"; readonly after: number }
  /** The body ends after so many bytes, as if that were all. */
  | { readonly kind: "truncate"; readonly after: number }
  /** A byte of the body is another one. */
  | { readonly kind: "corrupt" }
  /** Ranges are taken no notice of. */
  | { readonly kind: "no_ranges" }
  /** A byte now and then. */
  | { readonly kind: "trickle" }
  /** The pointer instead of the file. */
  | { readonly kind: "pointer" };

export interface Asked {
  readonly method: string;
  readonly path: string;
  readonly range: string | undefined;
  readonly authorization: string | undefined;
  /** On the storage, and not on the hub itself. */
  readonly storage: boolean;
}

export interface FakeHub extends AsyncDisposable {
  readonly url: string;
  readonly asked: readonly Asked[];
  /** Decides for each request that asks for a file; undefined: it is answered as it should be. */
  fault: (asked: Asked) => Fault | undefined;
  /** Without it everything is 401. */
  token: string | undefined;
  /** Addresses of the storage given out before this moment are expired. */
  expire(): void;
}

/** A hub with one repository, `org/name`, at one commit. It listens at `host`. */
export async function fakeHub(
  files: Readonly<Record<string, Uint8Array>>,
  host = "127.0.0.1",
): Promise<FakeHub> {
  const hub = new Hub(new Map(Object.entries(files)), host);
  await hub.open();
  return hub;
}

/** Bytes that repeat nowhere and are never zero, the same for the same seed. */
export function someBytes(length: number, seed = 1): Uint8Array {
  const bytes = new Uint8Array(length);
  let state = seed >>> 0 || 1;
  for (let index = 0; index < length; index++) {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    bytes[index] = (state >>> 0) % 255 + 1;
  }
  return bytes;
}

class Hub implements FakeHub {
  readonly asked: Asked[] = [];
  fault: FakeHub["fault"] = () => undefined;
  token: string | undefined;
  readonly #files: ReadonlyMap<string, Uint8Array>;
  readonly #host: string;
  readonly #hub: Server;
  readonly #storage: Server;
  #signature = 1;

  constructor(files: ReadonlyMap<string, Uint8Array>, host: string) {
    this.#files = files;
    this.#host = host;
    this.#hub = createServer((request, response) => this.#onHub(request, response));
    this.#storage = createServer((request, response) => this.#onStorage(request, response));
  }

  get url(): string {
    return `http://${this.#host}:${portOf(this.#hub)}`;
  }

  async open(): Promise<void> {
    for (const server of [this.#hub, this.#storage]) {
      await new Promise<void>((resolve) => server.listen(0, this.#host, () => resolve()));
    }
  }

  expire(): void {
    this.#signature++;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const server of [this.#hub, this.#storage]) {
      server.closeAllConnections();
      await new Promise<void>((resolve) => server.close(() => resolve()));
    }
  }

  #onHub(request: IncomingMessage, response: ServerResponse): void {
    const url = new URL(request.url ?? "/", this.url);
    const asked = this.#note(request, url, false);
    if (this.token !== undefined && asked.authorization !== `Bearer ${this.token}`) {
      return json(response, 401, { error: "Invalid credentials in Authorization header" });
    }
    const [, file] = /^\/org\/name\/resolve\/[^/]+\/(.+)$/.exec(url.pathname) ?? [];
    if (file !== undefined) return this.#onFile(decodeURIComponent(file), asked, response);
    const fault = this.fault(asked);
    if (fault?.kind === "status") return fail(response, fault);
    if (/^\/api\/models\/org\/name\/revision\//.test(url.pathname)) {
      return json(response, 200, { _id: "1", id: "org/name", sha: COMMIT, private: false });
    }
    if (new RegExp(`^/api/models/org/name/tree/${COMMIT}`).test(url.pathname)) {
      return this.#onTree(url, response);
    }
    json(response, 404, { error: "Repository not found" });
  }

  #onTree(url: URL, response: ServerResponse): void {
    const from = Number(url.searchParams.get("cursor") ?? 0);
    const all = [...this.#files].map(([path, bytes]) => {
      const size = bytes.length;
      return size < LARGE_BYTES
        ? { type: "file", path, size, oid: gitHash(bytes) }
        // The pointer is what git counts.
        : { type: "file", path, size: 134, oid: COMMIT, lfs: { oid: sha256(bytes), size } };
    });
    if (from + PAGE < all.length) {
      url.searchParams.set("cursor", String(from + PAGE));
      response.setHeader("link", `<${url.href}>; rel="next"`);
    }
    json(response, 200, all.slice(from, from + PAGE));
  }

  #onFile(path: string, asked: Asked, response: ServerResponse): void {
    const bytes = this.#files.get(path);
    if (bytes === undefined) return json(response, 404, { error: "Entry not found" });
    if (bytes.length < LARGE_BYTES) return this.#send(bytes, asked, response);
    const storage = `http://${this.#host}:${portOf(this.#storage)}`;
    response.writeHead(302, {
      location: `${storage}/${encodeURIComponent(path)}?signature=${this.#signature}`,
      "x-linked-etag": `"${sha256(bytes)}"`,
      "x-linked-size": String(bytes.length),
    });
    response.end();
  }

  #onStorage(request: IncomingMessage, response: ServerResponse): void {
    const url = new URL(request.url ?? "/", "http://storage");
    const asked = this.#note(request, url, true);
    const bytes = this.#files.get(decodeURIComponent(url.pathname.slice(1)));
    if (url.searchParams.get("signature") !== String(this.#signature)) {
      return fail(response, { kind: "status", status: 403 });
    }
    // As the real one does with a header that it did not sign.
    if (asked.authorization !== undefined) return fail(response, { kind: "status", status: 400 });
    if (bytes === undefined) return fail(response, { kind: "status", status: 404 });
    this.#send(bytes, asked, response);
  }

  #send(bytes: Uint8Array, asked: Asked, response: ServerResponse): void {
    const fault = this.fault(asked);
    if (fault?.kind === "status") return fail(response, fault);
    if (fault?.kind === "pointer") {
      const text = `version https://git-lfs.github.com/spec/v1\noid sha256:${sha256(bytes)}\n`;
      response.writeHead(200, { "content-length": text.length });
      return void response.end(text);
    }
    const [, first, last] = /^bytes=(\d+)-(\d*)$/.exec(asked.range ?? "") ?? [];
    const ranged = first !== undefined && fault?.kind !== "no_ranges";
    const start = ranged ? Number(first) : 0;
    const end = ranged && last ? Math.min(Number(last) + 1, bytes.length) : bytes.length;
    const body = bytes.slice(start, end);
    if (fault?.kind === "corrupt") body.set([(body.at(-1) ?? 0) ^ 0xff], body.length - 1);
    response.writeHead(ranged ? 206 : 200, {
      etag: `"${sha256(bytes)}"`,
      "accept-ranges": "bytes",
      ...(fault?.kind === "truncate" ? {} : { "content-length": body.length }),
      ...(ranged ? { "content-range": `bytes ${start}-${end - 1}/${bytes.length}` } : {}),
    });
    if (asked.method === "HEAD") return void response.end();
    if (fault?.kind === "trickle") return trickle(body, response);
    if (fault?.kind === "truncate") {
      return void response.end(Buffer.from(body.slice(0, fault.after)));
    }
    if (fault?.kind !== "drop") return void response.end(Buffer.from(body));
    response.write(Buffer.from(body.slice(0, fault.after)), () => response.socket?.destroy());
  }

  #note(request: IncomingMessage, url: URL, storage: boolean): Asked {
    const asked = {
      method: request.method ?? "",
      path: decodeURIComponent(url.pathname),
      range: request.headers.range,
      authorization: request.headers.authorization,
      storage,
    };
    this.asked.push(asked);
    return asked;
  }
}

function trickle(body: Uint8Array, response: ServerResponse): void {
  let at = 0;
  response.flushHeaders();
  const timer = setInterval(() => response.write(Buffer.from(body.slice(at, ++at))), 20);
  response.on("close", () => clearInterval(timer));
}

function fail(response: ServerResponse, fault: Extract<Fault, { kind: "status" }>): void {
  response.writeHead(fault.status, { "content-type": "application/json", ...fault.headers });
  response.end(JSON.stringify({ error: `ordered to answer ${fault.status}` }));
}

function json(response: ServerResponse, status: number, body: unknown): void {
  response.writeHead(status, { "content-type": "application/json" });
  response.end(JSON.stringify(body));
}

function portOf(server: Server): number {
  const address = server.address();
  if (address === null || typeof address === "string") {
    throw new Error("the server does not listen");
  }
  return address.port;
}

const known = new WeakMap<Uint8Array, string>();

function sha256(bytes: Uint8Array): string {
  const hash = known.get(bytes) ?? createHash("sha256").update(bytes).digest("hex");
  known.set(bytes, hash);
  return hash;
}

function gitHash(bytes: Uint8Array): string {
  return createHash("sha1").update(`blob ${bytes.length}\0`).update(bytes).digest("hex");
}
