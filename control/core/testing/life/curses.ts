/** What is wrong with engines of a model, in simulations. */
import type { Plain } from "@heddle/proto/plain";
import type { ShardSpec } from "@heddle/proto/gen/types";
import type { NodeId } from "../../ids.ts";

/** Models whose engines do not come up, wherever they are started. */
export interface Curses {
  /** It crashes as soon as it begins to load. */
  readonly crash: Set<string>;
  /** The load takes longer than any startup_timeout. */
  readonly slow: Set<string>;
  /** What fails for good, as its agent sees at once. */
  readonly flaws: Set<Flaw>;
}

/** Why engines of a model fail for good: with these arguments, or on that node. */
export type Flaw =
  & { readonly model: string; readonly reason: string }
  & (
    | { readonly of: "profile"; readonly args: string; readonly engineVersion: string }
    | { readonly of: "node"; readonly node: NodeId; readonly boot: number }
  );

/** Why an engine with that spec fails for good on the node now. */
export function flawOf(
  curses: Curses | undefined,
  { model, args }: Plain<ShardSpec>,
  { name, boot, engineVersion }: {
    readonly name: NodeId;
    readonly boot: number;
    readonly engineVersion: string;
  },
): Flaw | undefined {
  return [...curses?.flaws ?? []].find((flaw) =>
    flaw.model === model &&
    (flaw.of === "node"
      ? flaw.node === name && flaw.boot === boot
      : flaw.args === args.join(" ") && flaw.engineVersion === engineVersion)
  );
}
