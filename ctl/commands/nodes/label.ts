/** `ctl nodes label`: labels that operators put on a node, for profiles' node_selector. */
import { buildCommand } from "@stricli/core";
import type { NodeView } from "@heddle/proto/gen/admin";
import { CALL_TIMEOUT_MS } from "../../client.ts";
import { call, COMMON_FLAGS, type CommonFlags, type CtlContext } from "../../command.ts";

export const label = buildCommand({
  docs: {
    brief: "Put labels on a node (key=value) and take them off (key-)",
    fullDescription: "They win over the labels in the node's own agent.yaml, and stay until they " +
      "are taken off. What runs there goes on, also where a profile's node_selector fits no more.",
  },
  parameters: {
    flags: COMMON_FLAGS,
    positional: {
      kind: "array",
      parameter: { parse: String, brief: "The node, then its labels", placeholder: "node label" },
      minimum: 2,
    },
  },
  async func(this: CtlContext, flags: CommonFlags, node: string, ...labels: string[]) {
    const request = { node, ...parseLabels(labels) };
    const answer = await call(
      this,
      flags,
      (client) => client.labelNode(request, { timeoutMs: CALL_TIMEOUT_MS }),
    );
    this.io.out(`${node} has ${formatLabels(answer.node) || "no labels"}\n`);
  },
});

/** "rack=r1" sets, "rack-" removes. Throws `invalid_input` for anything else. */
export function parseLabels(
  words: readonly string[],
): { readonly set: Record<string, string>; readonly remove: string[] } {
  const set: Record<string, string> = {};
  const remove: string[] = [];
  for (const word of words) {
    const at = word.indexOf("=");
    if (at > 0) set[word.slice(0, at)] = word.slice(at + 1);
    else if (at < 0 && word.length > 1 && word.endsWith("-")) remove.push(word.slice(0, -1));
    else {
      throw new SyntaxError(`Cannot read label "${word}": want key=value, or key- to take it off`);
    }
  }
  return { set, remove };
}

/** "rack=r1, zone=a*": a star marks what an operator put there. */
export function formatLabels(node: NodeView | undefined): string {
  const labels = { ...node?.inventory?.labels, ...node?.operatorLabels };
  const mark = (key: string) => Object.hasOwn(node?.operatorLabels ?? {}, key) ? "*" : "";
  return Object.keys(labels).sort().map((key) => `${key}=${labels[key]}${mark(key)}`).join(", ");
}
