/**
 * Undoes a compression that we asked no engine for. Passing it on would need the client to have
 * asked, and the router could read neither usage nor errors in it.
 */
import type { Transform } from "node:stream";
import * as zlib from "node:zlib";
import { createZstdFrames } from "./body/frames.ts";
import { UpstreamError } from "./upstream_error.ts";

export interface Inflated {
  readonly headers: ReadonlyMap<string, string>;
  readonly body: AsyncIterable<Uint8Array>;
}

/** Headers and body as they would be without a content coding; unknown codings stay. */
export function inflated(
  headers: ReadonlyMap<string, string>,
  body: AsyncIterable<Uint8Array>,
): Inflated {
  const coding = headers.get("content-encoding")?.trim().toLowerCase();
  const none = coding === "" || coding === "identity";
  const inflater = inflaterFor(coding);
  if (!none && inflater === undefined) return { headers, body };
  const plain = new Map(headers);
  plain.delete("content-encoding");
  if (inflater === undefined) return { headers: plain, body };
  plain.delete("content-length");
  return { headers: plain, body: inflate(body, inflater) };
}

function inflaterFor(coding: string | undefined): (() => Transform) | undefined {
  switch (coding) {
    case "gzip":
    case "x-gzip":
      return () => zlib.createGunzip();
    case "deflate":
      return () => zlib.createInflate();
    case "br":
      return () => zlib.createBrotliDecompress();
    case "zstd":
      return createZstdFrames;
    default:
      return undefined;
  }
}

async function* inflate(
  body: AsyncIterable<Uint8Array>,
  create: () => Transform,
): AsyncGenerator<Uint8Array, void> {
  const inflater = create();
  const fed = feed(body, inflater);
  try {
    for await (const chunk of inflater) yield chunk;
  } catch (error) {
    if (error instanceof UpstreamError) throw error;
    throw new UpstreamError("body_invalid", `The body does not unpack: ${error}`, { cause: error });
  } finally {
    inflater.destroy();
    await fed;
  }
}

/** Never throws: what goes wrong with the body comes out of the inflater. */
async function feed(body: AsyncIterable<Uint8Array>, inflater: Transform): Promise<void> {
  try {
    for await (const chunk of body) {
      if (inflater.destroyed) return;
      if (!inflater.write(chunk)) await drained(inflater);
    }
    inflater.end();
  } catch (error) {
    inflater.destroy(error instanceof Error ? error : new Error(String(error)));
  }
}

function drained(inflater: Transform): Promise<void> {
  return new Promise((resolve) => {
    const done = (): void => {
      inflater.off("drain", done).off("close", done);
      resolve();
    };
    inflater.on("drain", done).on("close", done);
    if (inflater.destroyed) done();
  });
}
