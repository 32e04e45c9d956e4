/** The console's own files. They are in this program, as text that `deno task console` writes. */
import { createHash } from "node:crypto";
import { gzipSync } from "node:zlib";
import page from "./page.json" with { type: "json" };

interface Asset {
  readonly type: string;
  readonly body: Uint8Array;
  readonly gzipped: Uint8Array;
  readonly etag: string;
}

const ASSETS: ReadonlyMap<string, Asset> = new Map([
  ["/console/", asset("text/html; charset=utf-8", page.html)],
  ["/console/app.js", asset("text/javascript; charset=utf-8", page.js)],
  ["/console/style.css", asset("text/css; charset=utf-8", page.css)],
  ["/console/icon.svg", asset("image/svg+xml", page.icon)],
]);

/** What answers a request for one of the files. */
export interface AssetAnswer {
  readonly status: 200 | 304;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

/** The file at that path, or undefined when there is none. */
export function assetAt(
  path: string,
  asks: { readonly encodings: string | undefined; readonly known: string | undefined },
): AssetAnswer | undefined {
  const found = ASSETS.get(path);
  if (found === undefined) return undefined;
  // A browser asks each time, and gets a file again only when a new control has another one.
  const headers = { etag: found.etag, "cache-control": "no-cache", vary: "accept-encoding" };
  if (asks.known === found.etag) return { status: 304, headers, body: new Uint8Array() };
  const typed = { ...headers, "content-type": found.type };
  if (!/\bgzip\b/.test(asks.encodings ?? "")) {
    return { status: 200, headers: typed, body: found.body };
  }
  return {
    status: 200,
    headers: { ...typed, "content-encoding": "gzip" },
    body: found.gzipped,
  };
}

function asset(type: string, text: string): Asset {
  const body = new TextEncoder().encode(text);
  const etag = `"${createHash("sha256").update(body).digest("hex").slice(0, 16)}"`;
  return { type, body, gzipped: gzipSync(body), etag };
}
