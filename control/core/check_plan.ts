/**
 * The rules of a plan, restated without the code that makes plans: whatever that does wrong, a plan
 * that breaks a rule is never executed. Only `world.ts` and `plan.ts` are shared with it.
 */
import type { EpochMs, NodeId, ReplicaId } from "./ids.ts";
import type { PlaceReplica, Plan, ShardCommand } from "./plan.ts";
import type { Replica, Shard, World } from "./world.ts";

export type Rule =
  | "gpu_used_twice"
  | "gpu_unusable"
  | "gpu_class_mixed"
  | "fabric_mixed"
  | "hcas_foreign"
  | "hca_count_uneven"
  | "ports_overlap"
  | "node_unschedulable"
  | "replica_not_whole"
  | "not_settled"
  | "stop_without_reason"
  | "stop_not_whole"
  | "start_of_ending"
  | "two_commands"
  | "revision_old";

export interface Violation {
  readonly rule: Rule;
  /** Which node, replica or shard, and what is wrong there. */
  readonly detail: string;
}

/** Everything that is wrong with a plan for this world; empty when it may be executed. Pure. */
export function checkPlan(world: World, plan: Plan, now: EpochMs): readonly Violation[] {
  const placed = plan.actions.filter((action) => action.kind === "place_replica");
  const commands = plan.actions.filter((action) =>
    action.kind === "start_shard" || action.kind === "stop_shard"
  );
  return [
    ...checkResources(world, placed),
    ...placed.flatMap((each) => checkWhole(each, commands)),
    ...placed.flatMap((each) => checkIslands(world, each)),
    ...placed.flatMap((each) => checkNodes(world, each, now)),
    ...checkSettled(world, plan, now),
    ...checkCommands(world, plan, commands),
    ...checkStops(world, plan, commands),
  ];
}

interface Held {
  readonly node: NodeId;
  readonly shard: string;
  readonly uuids: readonly string[];
  readonly first: number;
  readonly last: number;
}

/** No GPU and no port is given to a new shard while anything holds it, another new one included. */
function checkResources(world: World, placed: readonly PlaceReplica[]): Violation[] {
  const byNode = new Map<NodeId, Held[]>();
  for (const replica of world.replicas.values()) {
    for (const shard of replica.shards) {
      const state = shard.status?.state;
      if (state !== "stopped" && state !== "failed") add(byNode, held(shard.node, shard.spec));
    }
  }
  const violations: Violation[] = [];
  for (const { node, spec } of placed.flatMap((each) => each.shards)) {
    const mine = held(node, spec);
    for (const other of byNode.get(node) ?? []) {
      for (const uuid of mine.uuids.filter((each) => other.uuids.includes(each))) {
        violations.push({
          rule: "gpu_used_twice",
          detail: `${uuid} on ${node}: ${other.shard} and ${mine.shard}`,
        });
      }
      if (mine.first <= other.last && other.first <= mine.last) {
        violations.push({
          rule: "ports_overlap",
          detail: `ports from ${mine.first} on ${node}: ${other.shard} and ${mine.shard}`,
        });
      }
    }
    if (new Set(mine.uuids).size !== mine.uuids.length) {
      violations.push({ rule: "gpu_used_twice", detail: `within ${mine.shard} on ${node}` });
    }
    add(byNode, mine);
  }
  return violations;
}

function held(node: NodeId, spec: Shard["spec"]): Held {
  return {
    node,
    shard: spec.shardId,
    uuids: spec.gpus.map((gpu) => gpu.uuid),
    first: spec.portFirst,
    last: spec.portFirst + spec.portCount - 1,
  };
}

function add(byNode: Map<NodeId, Held[]>, each: Held): void {
  const there = byNode.get(each.node);
  if (there === undefined) byNode.set(each.node, [each]);
  else there.push(each);
}

/** All ranks, each once, each on a node of its own; and what is started at once starts with them. */
function checkWhole(placed: PlaceReplica, commands: readonly ShardCommand[]): Violation[] {
  const { replica, shards } = placed;
  const ranks = shards.map((each) => each.spec.rank);
  const nodes = new Set(shards.map((each) => each.node));
  const right = shards.length > 0 && ranks.every((rank, index) => rank === index) &&
    nodes.size === shards.length &&
    shards.every(({ spec }) => spec.shardCount === shards.length && spec.replicaId === replica);
  const started = commands.some((each) => each.kind === "start_shard" && each.replica === replica);
  return right && started ? [] : [{
    rule: "replica_not_whole",
    detail: `${replica} has ranks ${ranks.join(", ")} on ${[...nodes].join(", ")}` +
      (started ? "" : "; none of them is started"),
  }];
}

/** One fabric and its HCAs only, one number of them, one class of GPUs that are fit for use. */
function checkIslands(world: World, placed: PlaceReplica): Violation[] {
  const { replica, shards } = placed;
  const violations: Violation[] = [];
  const several = shards.length > 1;
  const fabrics = new Set(shards.map(({ spec }) => spec.fabric));
  if (several && (fabrics.size > 1 || fabrics.has(""))) {
    violations.push({ rule: "fabric_mixed", detail: `${replica}: ${[...fabrics].join(", ")}` });
  }
  const counts = new Set(shards.map(({ spec }) => spec.hcas.length));
  if (counts.size > 1 || (several && counts.has(0))) {
    violations.push({ rule: "hca_count_uneven", detail: `${replica}: ${[...counts].join(", ")}` });
  }
  const classes = new Set<string>();
  for (const { node, spec } of shards) {
    const inventory = world.nodes.get(node)?.inventory;
    for (const ref of spec.hcas) {
      const hca = inventory?.hcas.find((each) => each.name === ref.name && each.port === ref.port);
      if (hca === undefined || hca.fabric !== spec.fabric || !hca.active) {
        violations.push({
          rule: "hcas_foreign",
          detail: `${replica}: ${ref.name}:${ref.port} on ${node} is not of ${spec.fabric}`,
        });
      }
    }
    for (const ref of spec.gpus) {
      const gpu = inventory?.gpus.find((each) => each.uuid === ref.uuid);
      if (gpu === undefined || gpu.problems.length > 0 || gpu.gpuClass === "") {
        violations.push({ rule: "gpu_unusable", detail: `${replica}: ${ref.uuid} on ${node}` });
      }
      classes.add(gpu?.gpuClass ?? "");
    }
  }
  if (classes.size > 1) {
    violations.push({ rule: "gpu_class_mixed", detail: `${replica}: ${[...classes].join(", ")}` });
  }
  return violations;
}

/** Only on nodes that are heard from, reachable by command, and that no operator has closed. */
function checkNodes(world: World, placed: PlaceReplica, now: EpochMs): Violation[] {
  return placed.shards.flatMap(({ node: name }) => {
    const node = world.nodes.get(name);
    const why = node === undefined
      ? "has not registered"
      : !node.connected
      ? "has no open stream"
      : now - node.lastSeenAt >= world.timings.unreachableMs
      ? "is silent"
      : world.decisions.nodes.has(name)
      ? "is closed by an operator"
      : undefined;
    return why === undefined
      ? []
      : [{ rule: "node_unschedulable", detail: `${placed.replica}: ${name} ${why}` } as const];
  });
}

/** Before all known nodes are heard, nothing is placed and nothing that works is taken away. */
function checkSettled(world: World, plan: Plan, now: EpochMs): Violation[] {
  const waited = now >= world.startedAt + world.timings.settleMs;
  if (waited || [...world.knownNodes].every((node) => world.nodes.has(node))) return [];
  return plan.actions.flatMap((action) =>
    action.kind === "place_replica" || action.kind === "drain_replica" ||
      action.kind === "stop_replica"
      ? [{ rule: "not_settled", detail: `${action.kind} ${action.replica}` } as const]
      : []
  );
}

/** One command per shard, to its own node, with a revision that is new or that shard's own. */
function checkCommands(
  world: World,
  plan: Plan,
  commands: readonly ShardCommand[],
): Violation[] {
  const violations: Violation[] = [];
  const seen = new Set<string>();
  for (const command of commands) {
    const key = `${command.node} ${command.shard}`;
    if (seen.has(key)) violations.push({ rule: "two_commands", detail: key });
    seen.add(key);
    const shard = shardOf(world, plan, command);
    if (shard === undefined) {
      violations.push({ rule: "replica_not_whole", detail: `${key} belongs to no replica` });
      continue;
    }
    const { term, sequence } = command.revision;
    const own = shard.command?.revision;
    const fresh = term === world.term && sequence > world.sequence;
    const again = own?.term === term && own.sequence === sequence;
    if (!fresh && !again) {
      violations.push({ rule: "revision_old", detail: `${key} with ${term}.${sequence}` });
    }
    const replica = world.replicas.get(command.replica);
    if (command.kind === "start_shard" && replica !== undefined && isEnding(replica, plan)) {
      violations.push({ rule: "start_of_ending", detail: key });
    }
  }
  return violations;
}

function shardOf(
  world: World,
  plan: Plan,
  command: ShardCommand,
): Pick<Shard, "command"> | undefined {
  const known = world.replicas.get(command.replica)?.shards
    .find((each) => each.id === command.shard && each.node === command.node);
  if (known !== undefined) return known;
  const isNew = plan.actions.some((action) =>
    action.kind === "place_replica" && action.replica === command.replica &&
    action.shards.some((each) => each.spec.shardId === command.shard && each.node === command.node)
  );
  return isNew ? {} : undefined;
}

/** Nothing is stopped but whole replicas that a decision ends, and none of their shards is missed. */
function checkStops(
  world: World,
  plan: Plan,
  commands: readonly ShardCommand[],
): Violation[] {
  const violations: Violation[] = [];
  const stopped = new Set<string>();
  const ended = new Set<ReplicaId>();
  for (const action of plan.actions) {
    if (action.kind === "stop_replica" || action.kind === "fail_replica") ended.add(action.replica);
  }
  for (const command of commands) {
    if (command.kind !== "stop_shard") continue;
    stopped.add(`${command.node} ${command.shard}`);
    const replica = world.replicas.get(command.replica);
    if (replica === undefined || !isEnding(replica, plan)) {
      violations.push({ rule: "stop_without_reason", detail: command.shard });
    }
  }
  const explained = new Set([...plan.waiting.map((each) => each.id), ...plan.kept]);
  for (const id of ended) {
    for (const shard of world.replicas.get(id)?.shards ?? []) {
      if (!stopped.has(`${shard.node} ${shard.id}`) && !explained.has(shard.id)) {
        violations.push({ rule: "stop_not_whole", detail: `${shard.id} of ${id} is left running` });
      }
    }
  }
  return violations;
}

function isEnding(replica: Replica, plan: Plan): boolean {
  return replica.failure !== undefined || replica.stopping !== undefined ||
    plan.actions.some((action) =>
      (action.kind === "stop_replica" || action.kind === "fail_replica") &&
      action.replica === replica.id
    );
}
