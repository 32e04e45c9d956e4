/** Revisions order control's decisions: first by term, then by sequence within the term. */
import { create } from "@bufbuild/protobuf";
import { type Revision as WireRevision, RevisionSchema } from "./gen/heddle/v1/types_pb.ts";
import type { Plain } from "./plain.ts";

/** `term` and `sequence` are whole numbers of 0 or more; {0, 0} is before every decision. */
export interface Revision {
  readonly term: number;
  readonly sequence: number;
}

export const NO_REVISION: Revision = { term: 0, sequence: 0 };

/** Below zero when `a` is older than `b`, zero when they are the same. */
export function compareRevisions(a: Revision, b: Revision): number {
  return a.term - b.term || a.sequence - b.sequence;
}

/** Reads a revision from the wire; an absent one is before every decision. */
export function decodeRevision(wire: Plain<WireRevision> | undefined): Revision {
  return wire === undefined
    ? NO_REVISION
    : { term: Number(wire.term), sequence: Number(wire.sequence) };
}

export function encodeRevision(revision: Revision): WireRevision {
  return create(RevisionSchema, {
    term: BigInt(revision.term),
    sequence: BigInt(revision.sequence),
  });
}

/** "7.12", for logs and tables. */
export function formatRevision(revision: Revision): string {
  return `${revision.term}.${revision.sequence}`;
}
