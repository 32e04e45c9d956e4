/** `ctl cordon` and `ctl uncordon`: an operator's decisions about a node. */
import { buildCommand } from "@stricli/core";
import type { NodeView } from "@heddle/proto/gen/admin";
import { decodeNodeState } from "@heddle/proto/node_state";
import { CALL_TIMEOUT_MS } from "../../client.ts";
import {
  call,
  COMMON_FLAGS,
  type CommonFlags,
  type CtlContext,
  REASON_FLAG,
  type ReasonFlags,
} from "../../command.ts";
import { plural } from "../../status/plural.ts";

/** The one positional parameter of these commands. */
export const NODE_PARAMETER = {
  kind: "tuple",
  parameters: [{ parse: String, brief: "Name of the node", placeholder: "node" }],
} as const;

/** Flags of a decision about a node. */
export const DECIDE_FLAGS = { ...COMMON_FLAGS, ...REASON_FLAG } as const;

export const cordon = buildCommand({
  docs: { brief: "Place nothing new on a node; what runs there goes on" },
  parameters: { flags: DECIDE_FLAGS, positional: NODE_PARAMETER },
  async func(this: CtlContext, flags: ReasonFlags, node: string) {
    const answer = await call(
      this,
      flags,
      (client) =>
        client.cordon({ node, reason: flags.reason ?? "" }, { timeoutMs: CALL_TIMEOUT_MS }),
    );
    this.io.out(`${decided(answer.node, node)}; undo with: heddle uncordon ${node}\n`);
  },
});

export const uncordon = buildCommand({
  docs: { brief: "End cordon and drain of a node" },
  parameters: { flags: COMMON_FLAGS, positional: NODE_PARAMETER },
  async func(this: CtlContext, flags: CommonFlags, node: string) {
    const answer = await call(
      this,
      flags,
      (client) => client.uncordon({ node }, { timeoutMs: CALL_TIMEOUT_MS }),
    );
    this.io.out(`${decided(answer.node, node)}\n`);
  },
});

/** "gpu-1 is cordoned, 2 replicas there". */
export function decided(node: NodeView | undefined, name: string): string {
  const state = node === undefined ? "unknown" : decodeNodeState(node.state);
  return `${name} is ${state}, ${plural(node?.replicaIds.length ?? 0, "replica")} there`;
}
