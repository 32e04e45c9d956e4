/** Operators' decisions that hold, all in one list, so that none is forgotten. */
import type { EpochMs } from "../ids.ts";
import type { Decision, World } from "../world.ts";
import type { DecisionView } from "../views.ts";

/** By kind, then by subject. */
export function viewDecisions(world: World, now: EpochMs): readonly DecisionView[] {
  const { nodes, paused, scales, labels, replicas } = world.decisions;
  const models = new Set(world.catalog.catalog.models.map((each) => each.name));
  const ofNode = (node: string) =>
    !world.knownNodes.has(node) && !world.nodes.has(node) &&
    !world.attached.has(node.replace(/\/[^/]*$/, ""));
  const ofModel = (model: string) => !models.has(model);
  const all: DecisionView[] = [
    ...[...nodes].map(([subject, decision]) => ({
      ...given(decision, now),
      kind: decision.kind,
      subject,
      value: "",
      orphaned: ofNode(subject),
    })),
    ...[...paused].map(([subject, decision]) => ({
      ...given(decision, now),
      kind: "pause" as const,
      subject,
      value: "",
      orphaned: ofModel(subject),
    })),
    ...[...scales].map(([subject, decision]) => ({
      ...given(decision, now),
      kind: "scale" as const,
      subject,
      value: `${decision.replicas}`,
      orphaned: ofModel(subject),
    })),
    ...[...labels].map(([subject, each]) => ({
      kind: "labels" as const,
      subject,
      value: Object.keys(each).sort().map((key) => `${key}=${each[key]}`).join(", "),
      by: "",
      reason: "",
      orphaned: ofNode(subject),
    })),
    // One whose replica is gone is done; the next one about a replica sweeps it away.
    ...[...replicas].filter(([subject]) => world.replicas.has(subject)).map((
      [subject, decision],
    ) => ({
      ...given(decision, now),
      kind: decision.kind,
      subject,
      value: "",
      orphaned: false,
    })),
  ];
  return all.sort((a, b) => compare(a.kind, b.kind) || compare(a.subject, b.subject));
}

function given({ by, reason, at }: Decision, now: EpochMs) {
  return { by, reason, decidedMs: Math.max(0, now - at) };
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
