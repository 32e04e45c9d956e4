/** `ctl nodes`: every node, and below the table every GPU that placement does not use. */
import { formatDurationMs } from "@heddle/common/duration";
import { type NodeView, NodeViewSchema } from "@heddle/proto/gen/admin";
import { decodeNodeState } from "@heddle/proto/node_state";
import { attachedCards, attachedOn, attachedState } from "../attach/words.ts";
import { CALL_TIMEOUT_MS } from "../../client.ts";
import { listCommand } from "../../command.ts";
import { reasonText } from "../../status/reason_text.ts";
import { type Listing, visible } from "../../table.ts";
import { fieldsOf, toRecord } from "../../record.ts";
import { formatInstalls } from "./installs.ts";
import { loadWords, memoryWords } from "./load.ts";
import { formatLabels } from "./label.ts";

export const listNodes = listCommand(
  "List nodes with their state, GPUs and replicas",
  async (client) => nodeListing((await client.listNodes({}, { timeoutMs: CALL_TIMEOUT_MS })).nodes),
);

/** The table of nodes. */
export function nodeListing(nodes: readonly NodeView[]): Listing<NodeView> {
  return {
    rows: nodes,
    empty: "No node has registered. Start an agent on one: see docs/agent.md",
    footer: (rows) => formatProblems(rows) + formatInstalls(rows),
    record: (node) => toRecord(NodeViewSchema, node),
    fields: fieldsOf(NodeViewSchema),
    columns: [
      { title: "NODE", cell: (node) => node.name },
      {
        title: "STATE",
        cell: (node) => attachedState(node.attached) ?? decodeNodeState(node.state),
      },
      { title: "GPUS FREE", cell: (node) => attachedCards(node.attached) ?? freeGpus(node) },
      {
        title: "CLASSES",
        cell: (node) =>
          attachedOn(node.attached) ?? counted(node.inventory?.gpus.map((g) => g.gpuClass)),
      },
      { title: "FABRICS", cell: fabricsOf },
      { title: "REPLICAS", cell: (node) => String(node.replicaIds.length) },
      { title: "LAST SEEN", cell: lastSeen },
      { title: "VERSION", cell: (node) => node.agentVersion },
      { title: "ADDRESS", cell: (node) => node.address, wide: true },
      { title: "LOAD", cell: loadWords, wide: true },
      { title: "MEMORY FREE", cell: memoryWords, wide: true },
      {
        title: "ENGINES",
        cell: (node) =>
          node.inventory?.engines.map((e) => `${e.name} ${e.version}`.trim()).join(", ") ?? "",
        wide: true,
      },
      { title: "DECISION", cell: decisionOf, wide: true },
      { title: "LABELS", cell: formatLabels, wide: true },
    ],
  };
}

function freeGpus(node: NodeView): string {
  const gpus = node.inventory?.gpus ?? [];
  const free = gpus.filter((gpu) =>
    gpu.problems.length === 0 && !node.usedGpus.includes(gpu.index)
  );
  return `${free.length}/${gpus.length}`;
}

function counted(words: readonly string[] | undefined): string {
  const counts = new Map<string, number>();
  for (const word of words ?? []) {
    const name = word === "" ? "unknown" : word;
    counts.set(name, (counts.get(name) ?? 0) + 1);
  }
  return [...counts].map(([word, count]) => `${count}× ${word}`).join(", ");
}

function fabricsOf(node: NodeView): string {
  return node.inventory?.fabrics
    .map((fabric) => fabric.degraded ? `${fabric.name} (degraded)` : fabric.name).join(", ") ?? "";
}

function lastSeen(node: NodeView): string {
  return node.lastSeenMs === undefined
    ? "never"
    : `${formatDurationMs(Number(node.lastSeenMs))} ago`;
}

function decisionOf(node: NodeView): string {
  if (!node.cordoned && !node.draining) return "";
  const what = node.draining ? "drain" : "cordon";
  const why = node.decisionReason === "" ? "" : `: ${node.decisionReason}`;
  return `${what} by ${node.decidedBy}${why}`;
}

/** A line for a certificate that should have been renewed by now. */
export function certificateEnds(
  { name, certificateDaysLeft: days }: Pick<NodeView, "name" | "certificateDaysLeft">,
): readonly string[] {
  return days === undefined ? [] : [
    `  ${name}: its certificate ends in ${days} day${
      days === 1 ? "" : "s"
    } and was not renewed → ` +
    "see the log of its agent or router; ansible-playbook site.yml renews it\n",
  ];
}

/** Problems of nodes and of what is on them, a line each; empty when there are none. */
export function formatProblems(nodes: readonly NodeView[]): string {
  const lines = nodes.flatMap((node) => {
    const inventory = node.inventory;
    const parts = [
      ...(inventory?.problems ?? []).map((problem) => ({ part: "", problem })),
      ...(inventory?.gpus ?? []).flatMap((gpu) =>
        gpu.problems.map((problem) => ({ part: ` GPU ${gpu.index}`, problem }))
      ),
      ...(inventory?.hcas ?? []).flatMap((hca) =>
        hca.problems.map((problem) => ({ part: ` ${hca.name}:${hca.port}`, problem }))
      ),
      ...(inventory?.engines ?? []).flatMap((engine) =>
        engine.problems.map((problem) => ({ part: ` engine ${engine.name}`, problem }))
      ),
    ];
    const told = parts.map(({ part, problem }) => {
      const remedy = problem.remedy === "" ? "" : ` → ${problem.remedy}`;
      return `  ${
        visible(`${node.name}${part}: ${reasonText(problem.reason, problem.detail)}${remedy}`)
      }\n`;
    });
    return [...told, ...certificateEnds(node)];
  });
  return lines.length === 0 ? "" : `\nProblems:\n${lines.join("")}`;
}
