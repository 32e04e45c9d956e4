/**
 * Decides about a command before anything is done. A leader that was replaced must be harmless: a
 * command of an older term is refused whatever it is about. Within a term each shard has its own
 * order, because commands to several shards are sent again each by itself when no answer came.
 */
import { compareRevisions, formatRevision, type Revision } from "@heddle/proto/revision";
import { ended, type Shard, type ShardSpec } from "./shard/shard.ts";

/** A refusal's word, as control gets it. */
export type RefusalReason =
  | "stale_revision"
  | "invalid_spec"
  | "shard_exists"
  | "gpu_missing"
  | "gpu_in_use"
  | "ports_out_of_range"
  | "ports_in_use"
  | "state_unreadable"
  | "state_not_writable";

export type Verdict =
  | { readonly kind: "start" }
  | { readonly kind: "stop" }
  /** Accepted, and nothing to do: it was done already. */
  | { readonly kind: "done" }
  | { readonly kind: "refused"; readonly reason: RefusalReason; readonly detail: string };

/** What a decision depends on. */
export interface Node {
  /** Highest revision ever accepted. */
  readonly highest: Revision;
  readonly shards: ReadonlyMap<string, Shard>;
  /** GPUs and ports of shards whose state this version cannot read. */
  readonly unreadable: readonly {
    readonly shardId: string;
    readonly spec: ShardSpec | undefined;
  }[];
  /** UUID of the GPU at each index; undefined when GPUs have not been looked for yet. */
  readonly gpus: ReadonlyMap<number, string> | undefined;
  readonly ports: { readonly first: number; readonly last: number };
}

export function acceptStart(
  command: { readonly spec: ShardSpec; readonly revision: Revision },
  node: Node,
): Verdict {
  const { spec, revision } = command;
  const known = node.shards.get(spec.shardId);
  const stale = staleness(revision, known, node);
  if (stale !== undefined) return stale;
  const invalid = invalidity(spec);
  if (invalid !== undefined) return refuse("invalid_spec", invalid);
  if (known !== undefined) {
    if (compareRevisions(revision, known.revision) === 0) return { kind: "done" };
    if (!ended(known.state)) {
      const same = known.spec.fingerprint === spec.fingerprint &&
        known.spec.attempt === spec.attempt && wanted(known);
      return same ? { kind: "done" } : refuse(
        "shard_exists",
        `Shard ${spec.shardId} is ${known.state.kind} with attempt ${known.spec.attempt}: stop it first`,
      );
    }
  }
  return unreadableTwin(spec.shardId, node) ?? lackingGpu(spec, node) ?? busyPorts(spec, node) ??
    { kind: "start" };
}

export function acceptStop(
  command: { readonly shardId: string; readonly revision: Revision },
  node: Node,
): Verdict {
  const known = node.shards.get(command.shardId);
  const stale = staleness(command.revision, known, node);
  if (stale !== undefined) return stale;
  if (known === undefined) return unreadableTwin(command.shardId, node) ?? { kind: "done" };
  return { kind: "stop" };
}

function refuse(reason: RefusalReason, detail: string): Verdict {
  return { kind: "refused", reason, detail };
}

function staleness(
  revision: Revision,
  known: Shard | undefined,
  node: Node,
): Verdict | undefined {
  if (revision.term < node.highest.term) {
    return refuse(
      "stale_revision",
      `Revision ${formatRevision(revision)} is of an older term than ${
        formatRevision(node.highest)
      }, which this node has accepted`,
    );
  }
  if (known !== undefined && compareRevisions(revision, known.revision) < 0) {
    return refuse(
      "stale_revision",
      `Revision ${formatRevision(revision)} is older than ${
        formatRevision(known.revision)
      }, which made the shard what it is`,
    );
  }
  return undefined;
}

function invalidity(spec: ShardSpec): string | undefined {
  if (spec.shardId === "" || spec.shardId.length > 200) {
    return `shard_id must have 1 to 200 characters, it has ${spec.shardId.length}`;
  }
  if (spec.model === "") return "model is empty";
  if (spec.engine === "") return "engine is empty";
  if (spec.shardCount < 1 || spec.rank >= spec.shardCount) {
    return `rank ${spec.rank} is not below shard_count ${spec.shardCount}`;
  }
  if (spec.portCount < 1) return "port_count is 0: the engine needs a port";
  if (spec.shardCount > 1 && spec.leaderAddress === "") {
    return "leader_address is empty, and the replica has several shards";
  }
  const twice = spec.gpus.find(({ uuid }, at) =>
    spec.gpus.findIndex((other) => other.uuid === uuid) < at
  );
  return twice === undefined ? undefined : `GPU ${twice.uuid} is given twice`;
}

function wanted(shard: Shard): boolean {
  return shard.state.kind !== "stopping" && shard.state.kind !== "draining";
}

function unreadableTwin(shardId: string, node: Node): Verdict | undefined {
  if (!node.unreadable.some((each) => each.shardId === shardId)) return undefined;
  return refuse(
    "state_unreadable",
    `The state of shard ${shardId} was written by a newer agent: upgrade this one, or stop the ` +
      "node's engines with `heddle-agent --stop-engines yes`",
  );
}

function* holders(node: Node): Generator<{ shardId: string; spec: ShardSpec }> {
  for (const shard of node.shards.values()) {
    if (!ended(shard.state)) yield { shardId: shard.spec.shardId, spec: shard.spec };
  }
  for (const { shardId, spec } of node.unreadable) if (spec !== undefined) yield { shardId, spec };
}

function lackingGpu(spec: ShardSpec, node: Node): Verdict | undefined {
  for (const gpu of spec.gpus) {
    const present = node.gpus?.get(gpu.index);
    if (node.gpus !== undefined && present !== gpu.uuid) {
      return refuse(
        "gpu_missing",
        `GPU ${gpu.index} should be ${gpu.uuid}, but this node ${
          present === undefined ? "has none of that index" : `has ${present} there`
        }`,
      );
    }
    for (const holder of holders(node)) {
      if (holder.shardId === spec.shardId) continue;
      if (holder.spec.gpus.some(({ uuid }) => uuid === gpu.uuid)) {
        return refuse("gpu_in_use", `GPU ${gpu.index} (${gpu.uuid}) is held by ${holder.shardId}`);
      }
    }
  }
  return undefined;
}

function busyPorts(spec: ShardSpec, node: Node): Verdict | undefined {
  const last = spec.portFirst + spec.portCount - 1;
  if (spec.portFirst < node.ports.first || last > node.ports.last) {
    return refuse(
      "ports_out_of_range",
      `Ports ${spec.portFirst}–${last} are not within this node's ${node.ports.first}–${node.ports.last}`,
    );
  }
  for (const holder of holders(node)) {
    if (holder.shardId === spec.shardId) continue;
    const held = holder.spec;
    if (spec.portFirst < held.portFirst + held.portCount && held.portFirst <= last) {
      return refuse(
        "ports_in_use",
        `Ports ${spec.portFirst}–${last} overlap with those of ${holder.shardId}`,
      );
    }
  }
  return undefined;
}
