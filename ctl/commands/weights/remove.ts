/** `ctl weights remove`: what Heddle fetched, by whichever name the list shows. */
import { buildCommand } from "@stricli/core";
import type { NodeWeights } from "@heddle/proto/gen/weights";
import { HeddleError } from "@heddle/proto/error";
import { CALL_TIMEOUT_MS } from "../../client.ts";
import { COMMON_FLAGS, type CtlContext, type SureFlags, YES_FLAG } from "../../command.ts";
import { confirm } from "../../io.ts";
import { callWeights, SLOW_CALL_MS } from "./client.ts";
import { formatBytes } from "./quantity.ts";

export const removeWeights = buildCommand({
  docs: {
    brief: "Remove what Heddle fetched on a node",
    fullDescription:
      "WHAT is a model, a source, or, where several versions are there, a folder as " +
      "`heddle weights list -o wide` shows it. Only what Heddle itself fetched is removed, and " +
      "not while a shard uses it; a fetch that is under way is ended first.",
  },
  parameters: {
    flags: { ...COMMON_FLAGS, ...YES_FLAG },
    positional: {
      kind: "tuple",
      parameters: [
        { parse: String, brief: "Name of the node", placeholder: "node" },
        { parse: String, brief: "A model, a source, or a folder", placeholder: "what" },
      ],
    },
  },
  async func(this: CtlContext, flags: SureFlags, node: string, what: string) {
    const { weights } = await callWeights(
      this,
      flags,
      (client) => client.listWeights({}, { timeoutMs: CALL_TIMEOUT_MS }),
    );
    const { folder, words } = fetchedAs(what, node, weights);
    await confirm(this, flags, `Remove ${words} on ${node}? Fetching it again takes time.`);
    const { freedBytes } = await callWeights(
      this,
      flags,
      (client) => client.removeWeights({ node, folder }, { timeoutMs: SLOW_CALL_MS }),
    );
    this.io.out(`Removed ${folder} on ${node}: ${formatBytes(freedBytes)} freed\n`);
  },
});

/**
 * The folder on `node` that `what` means, and what a person knows it by. Where the list shows nothing
 * of the node, and for what a fetch left behind, `what` itself: control and the node know more. Throws `not_found`, or
 * `invalid_input` where several are meant.
 */
function fetchedAs(
  what: string,
  node: string,
  all: readonly NodeWeights[],
): { readonly folder: string; readonly words: string } {
  const there = all.filter((each) => each.node === node);
  const folderOf = ({ weights }: NodeWeights) => weights?.folder ?? "";
  const whole = there.filter((each) => folderOf(each) === what);
  const found = whole.length > 0
    ? whole
    : there.filter(({ models, weights }) =>
      models.includes(what) || weights?.want?.source === what
    );
  const [only] = found;
  if (only !== undefined && found.length === 1) {
    return { folder: folderOf(only), words: wordsOf(only) };
  }
  // What a fetch of before left behind is on no list, and the node knows it by its name.
  if (there.length === 0 || (only === undefined && what.startsWith(".partial-"))) {
    return { folder: what, words: what };
  }
  if (only === undefined) {
    throw new HeddleError(
      "not_found",
      `Cannot remove weights: ${node} has fetched no "${what}". What it has: ${
        there.map(wordsOf).join("; ")
      }`,
    );
  }
  throw new HeddleError(
    "invalid_input",
    `Cannot remove weights: "${what}" may be any of several on ${node}. Name the folder: ${
      found.map(folderOf).join(", ")
    }`,
  );
}

/** "hf://org/name (2.9 MiB, of chat)". */
function wordsOf({ weights, models }: NodeWeights): string {
  const size = weights?.sizeBytes ?? 0n;
  const more = [
    ...(size === 0n ? [] : [formatBytes(size)]),
    ...(models.length === 0 ? [] : [`of ${models.join(", ")}`]),
  ];
  const source = weights?.want?.source || (weights?.folder ?? "");
  return more.length === 0 ? source : `${source} (${more.join(", ")})`;
}
