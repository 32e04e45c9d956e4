/** Reads a request's body with caps on what comes over the wire and on what it unpacks to. */
import type { IncomingMessage } from "node:http";
import type { Transform } from "node:stream";
import { createGunzip } from "node:zlib";
import { createZstdFrames } from "./frames.ts";
import { plainBytes } from "./plain_bytes.ts";
import { declaredSize } from "./zstd.ts";

export interface BodyLimits {
  /** As sent, compressed or not. */
  readonly wireBytesMax: number;
  /** After inflation. */
  readonly bodyBytesMax: number;
}

export type BodyRefusal =
  /** 413: more bytes than `wireBytesMax`. */
  | "body_too_large"
  /** 413: unpacks to more than `bodyBytesMax`. */
  | "body_inflates_too_large"
  /** 415: a content-encoding other than identity, gzip and zstd, or several. */
  | "encoding_unsupported"
  /** 400: does not unpack. */
  | "encoding_corrupt"
  /** 400, though nobody is left to read it: the client went away. */
  | "body_cut";

export type BodyOutcome =
  /** The bytes after inflation; one contiguous array. */
  | { readonly kind: "body"; readonly bytes: Uint8Array }
  | {
    readonly kind: "refused";
    readonly reason: BodyRefusal;
    readonly status: 400 | 413 | 415;
    /** A sentence for the client, without a period. */
    readonly detail: string;
  };

/**
 * Reads the whole body. Refuses by `content-length` before reading a byte; a refused body is not
 * read to its end, so that the caller answers with `connection: close`. Never throws for what a
 * client can do.
 */
export function readBody(request: IncomingMessage, limits: BodyLimits): Promise<BodyOutcome> {
  const coding = codingOf(request);
  if (coding === undefined) {
    return Promise.resolve(refused("encoding_unsupported", CODINGS_TOLD));
  }
  // Each limit bounds a plain body: it is both what is sent and what is kept.
  const wireBytesMax = coding === "identity"
    ? Math.min(limits.wireBytesMax, limits.bodyBytesMax)
    : limits.wireBytesMax;
  if (Number(request.headers["content-length"] ?? 0) > wireBytesMax) {
    return Promise.resolve(tooLarge(wireBytesMax));
  }
  return new Promise((resolve) =>
    new Reading(request, { ...limits, wireBytesMax }, resolve).start(coding)
  );
}

type Compression = "gzip" | "zstd";
export type Coding = "identity" | Compression;

/** A sentence for clients that sent another one. */
export const CODINGS_TOLD =
  "The body's content-encoding is not supported: send it plain, or as gzip or zstd";

/** A stream that takes what is packed so and gives what it holds. */
export function createInflater(coding: Compression): Transform {
  return coding === "gzip" ? createGunzip() : createZstdFrames();
}

/** How a request's body is packed; undefined for ways that are not supported. */
export function codingOf({ headers }: IncomingMessage): Coding | undefined {
  switch ((headers["content-encoding"] ?? "").trim().toLowerCase()) {
    case "":
    case "identity":
      return "identity";
    case "gzip":
    case "x-gzip":
      return "gzip";
    case "zstd":
      return "zstd";
    default:
      return undefined;
  }
}

/**
 * A body that has unpacked to so much, and to so many times of what came in, is counted to its end
 * before any of it is kept: nearly all such bodies are bombs, and must not fill memory up to the cap.
 */
const TRUSTED_BYTES = 2 ** 20;
const TRUSTED_RATIO = 100;

/** One body on its way. Whatever ends it first, wins; nothing of it stays behind then. */
class Reading {
  readonly #request: IncomingMessage;
  readonly #limits: BodyLimits;
  readonly #resolve: (outcome: BodyOutcome) => void;
  #inflater: Transform | undefined;
  #wireBytes = 0;
  /** What came in compressed, in case it must be unpacked once more. */
  #wire: Uint8Array[] = [];
  #onlyCounts = false;
  #parts: Uint8Array[] = [];
  #bytes = 0;
  /** All of it has come in; it may still unpack. */
  #ended = false;
  #over = false;

  constructor(
    request: IncomingMessage,
    limits: BodyLimits,
    resolve: (outcome: BodyOutcome) => void,
  ) {
    this.#request = request;
    this.#limits = limits;
    this.#resolve = resolve;
  }

  start(coding: Coding): void {
    const request = this.#request;
    if (coding !== "identity") {
      this.#inflater = this.#createInflater(coding, () => this.#onInflated(coding));
      this.#inflater.on("drain", () => request.resume());
    }
    request.on("data", this.#onData).on("end", this.#onEnd);
    // A client that goes away: "aborted" or "error" or only "close", by version and by moment.
    request.on("aborted", this.#onCut).on("error", this.#onCut).on("close", this.#onCut);
    if (request.destroyed) this.#onCut();
  }

  #createInflater(coding: Compression, onEnd: () => void): Transform {
    const inflater = createInflater(coding);
    inflater.on("data", (part: Uint8Array) => this.#keep(part));
    inflater.on("end", onEnd);
    inflater.on(
      "error",
      () => this.#finish(refused("encoding_corrupt", `The body does not unpack as ${coding}`)),
    );
    return inflater;
  }

  /** It is within bounds. What was only counted is unpacked once more, now to be kept. */
  #onInflated(coding: Compression): void {
    if (!this.#onlyCounts) return this.#finish(this.#body());
    this.#onlyCounts = false;
    this.#bytes = 0;
    this.#inflater = this.#createInflater(coding, () => this.#finish(this.#body()));
    for (const chunk of this.#wire) this.#inflater.write(chunk);
    this.#wire = [];
    this.#inflater.end();
  }

  #body(): BodyOutcome {
    return { kind: "body", bytes: joined(this.#parts, this.#bytes) };
  }

  readonly #onData = (chunk: Uint8Array): void => {
    this.#wireBytes += chunk.length;
    if (this.#wireBytes > this.#limits.wireBytesMax) {
      return this.#finish(tooLarge(this.#limits.wireBytesMax));
    }
    if (this.#inflater === undefined) return this.#keep(chunk);
    if (this.#wire.length === 0 && (declaredSize(chunk) ?? 0) > this.#limits.bodyBytesMax) {
      return this.#finish(inflatesTooLarge(this.#limits.bodyBytesMax));
    }
    this.#wire.push(chunk);
    if (!this.#inflater.write(chunk)) this.#request.pause();
  };

  readonly #onEnd = (): void => {
    this.#ended = true;
    if (this.#inflater !== undefined && this.#wireBytes > 0) this.#inflater.end();
    else this.#finish(this.#body());
  };

  readonly #onCut = (): void => {
    // "close" also follows a body that is all here, while it still unpacks. `complete` would not
    // tell: it is true for a body that has come in and was thrown away unread with its connection.
    if (this.#ended) return;
    this.#finish(refused("body_cut", "The connection ended before the body did"));
  };

  #keep(part: Uint8Array): void {
    this.#bytes += part.length;
    const { bodyBytesMax } = this.#limits;
    if (this.#bytes > bodyBytesMax) {
      return this.#finish(inflatesTooLarge(bodyBytesMax));
    }
    if (this.#bytes > TRUSTED_BYTES && this.#wire.length > 0) {
      this.#onlyCounts ||= this.#bytes > this.#wireBytes * TRUSTED_RATIO;
      if (this.#onlyCounts) this.#parts = [];
    }
    if (!this.#onlyCounts) this.#parts.push(part);
  }

  #finish(outcome: BodyOutcome): void {
    if (this.#over) return;
    this.#over = true;
    this.#parts = [];
    this.#wire = [];
    this.#request.off("data", this.#onData).off("end", this.#onEnd);
    this.#request.off("aborted", this.#onCut).off("close", this.#onCut);
    // The "error" listener stays: an error nobody listens to would end the process.
    this.#inflater?.removeAllListeners("data").removeAllListeners("end").destroy();
    if (outcome.kind === "refused") this.#request.pause();
    this.#resolve(outcome);
  }
}

function tooLarge(max: number): BodyOutcome {
  return refused("body_too_large", `The body is larger than ${sizeText(max)}`);
}

function inflatesTooLarge(max: number): BodyOutcome {
  return refused("body_inflates_too_large", `The body unpacks to more than ${sizeText(max)}`);
}

function refused(reason: BodyRefusal, detail: string): BodyOutcome {
  return { kind: "refused", reason, status: STATUS[reason], detail };
}

const STATUS = {
  body_too_large: 413,
  body_inflates_too_large: 413,
  encoding_unsupported: 415,
  encoding_corrupt: 400,
  body_cut: 400,
} as const;

function sizeText(bytes: number): string {
  const mib = bytes / 2 ** 20;
  return mib >= 1 ? `${Number(mib.toFixed(1))} MiB` : `${bytes} bytes`;
}

function joined(parts: readonly Uint8Array[], length: number): Uint8Array {
  const [only] = parts;
  if (parts.length === 1 && only !== undefined) return plainBytes(only);
  const whole = new Uint8Array(length);
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}
