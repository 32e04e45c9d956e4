/** Reads a request's body with caps on what comes over the wire and on what it unpacks to. */
import type { IncomingMessage } from "node:http";

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
    /** A sentence for the client. */
    readonly detail: string;
  };

/**
 * Reads the whole body. Refuses by `content-length` before reading a byte; a refused body is not
 * read to its end, so that the caller answers with `connection: close`. Never throws for what a
 * client can do.
 */
export function readBody(_request: IncomingMessage, _limits: BodyLimits): Promise<BodyOutcome> {
  throw new Error("not built yet");
}
