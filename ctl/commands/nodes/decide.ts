/** `ctl cordon`, `ctl uncordon` and `ctl drain`: an operator's decisions about a node. */
import { buildCommand } from "@stricli/core";
import type { NodeView } from "@heddle/proto/gen/admin";
import { decodeNodeState } from "@heddle/proto/node_state";
import { CALL_TIMEOUT_MS } from "../../client.ts";
import { confirm } from "../../io.ts";
import {
  call,
  COMMON_FLAGS,
  type CommonFlags,
  type CtlContext,
  REASON_FLAG,
  type ReasonFlags,
  type SureFlags,
  YES_FLAG,
} from "../../command.ts";

const NODE_PARAMETER = {
  kind: "tuple",
  parameters: [{ parse: String, brief: "Name of the node", placeholder: "node" }],
} as const;

const DECIDE_FLAGS = { ...COMMON_FLAGS, ...REASON_FLAG } as const;

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
    this.io.out(`${decided(answer.node, node)}; undo with: uncordon ${node}\n`);
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

interface DrainFlags extends SureFlags, ReasonFlags {}

export const drain = buildCommand({
  docs: { brief: "Move what runs on a node elsewhere, then stop it there" },
  parameters: { flags: { ...DECIDE_FLAGS, ...YES_FLAG }, positional: NODE_PARAMETER },
  async func(this: CtlContext, flags: DrainFlags, node: string) {
    await confirm(
      this,
      flags,
      `Drain node ${node}? What runs there stops, also where it finds no other place.`,
    );
    const answer = await call(
      this,
      flags,
      (client) =>
        client.drain({ node, reason: flags.reason ?? "" }, { timeoutMs: CALL_TIMEOUT_MS }),
    );
    this.io.out(`${decided(answer.node, node)}; watch it with: nodes\n`);
  },
});

function decided(node: NodeView | undefined, name: string): string {
  const state = node === undefined ? "unknown" : decodeNodeState(node.state);
  const count = node?.replicaIds.length ?? 0;
  return `${name} is ${state}, ${count} replica${count === 1 ? "" : "s"} there`;
}
