/** A request's body for an engine, from the pieces that it consists of. */
import type { BodyPiece } from "../../core/request/request.ts";
import type { UpstreamBody } from "../upstream_request.ts";
import type { Spool } from "./spool.ts";

/** `spool` holds what the ranges among `pieces` mean. */
export function upstreamBody(
  pieces: readonly BodyPiece[],
  spool: Spool | undefined,
): UpstreamBody {
  const [only] = pieces;
  if (pieces.length === 1 && only instanceof Uint8Array) return only;
  if (spool === undefined) throw new Error("The body lies in no spool");
  return {
    length: pieces.reduce((sum, piece) => sum + lengthOf(piece), 0),
    chunks: () => chunksOf(pieces, spool),
  };
}

async function* chunksOf(
  pieces: readonly BodyPiece[],
  spool: Spool,
): AsyncGenerator<Uint8Array> {
  for (const piece of pieces) {
    if (piece instanceof Uint8Array) yield piece;
    else yield* spool.read(piece);
  }
}

function lengthOf(piece: BodyPiece): number {
  return piece instanceof Uint8Array ? piece.length : piece.end - piece.start;
}
