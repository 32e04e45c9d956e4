/** Where the lines lie that an operator asked for. */
import { HeddleError } from "@heddle/proto/error";
import type { ReadLogsRequest } from "@heddle/proto/gen/admin";
import type { World } from "../../core/world.ts";
import { unknownName } from "./known_name.ts";

/** Most lines of history for one reader. */
const TAIL_LINES_MAX = 10_000;

export interface FoundLog {
  readonly node: string;
  /** A shard id, or "agent". */
  readonly source: string;
  /** What the lines are shown under: the shard, or the node. */
  readonly label: string;
  readonly tailLines: number;
  readonly follow: boolean;
}

/** Finds a replica's leader, a shard, or a node's agent. Throws `not_found` or `invalid_input`. */
export function findLog(world: World, request: ReadLogsRequest): FoundLog {
  const { tailLines, follow, source } = request;
  if (tailLines > TAIL_LINES_MAX) {
    throw new HeddleError(
      "invalid_input",
      `Cannot read ${tailLines} lines of history: ${TAIL_LINES_MAX} at most`,
    );
  }
  return { ...placeOf(world, source, request.nodeSource), tailLines, follow };
}

function placeOf(
  world: World,
  source: ReadLogsRequest["source"],
  nodeSource: string,
): Pick<FoundLog, "node" | "source" | "label"> {
  const action = "read logs";
  switch (source.case) {
    case "node": {
      const name = source.value;
      if (!world.nodes.has(name)) {
        throw unknownName({ action, noun: "node", name }, world.nodes.keys());
      }
      return { node: name, source: nodeSource || "agent", label: name };
    }
    case "shardId": {
      const shards = [...world.replicas.values()].flatMap((replica) => replica.shards);
      const shard = shards.find(({ id }) => id === source.value);
      if (shard === undefined) {
        const what = { action, noun: "shard", name: source.value };
        throw unknownName(what, shards.map(({ id }) => id));
      }
      return { node: shard.node, source: shard.id, label: shard.id };
    }
    case "replicaId": {
      const replica = world.replicas.get(source.value);
      if (replica === undefined) {
        const what = { action, noun: "replica", name: source.value };
        throw unknownName(what, world.replicas.keys());
      }
      const leader = replica.shards.find(({ rank }) => rank === 0);
      if (leader === undefined) {
        const text = `Cannot ${action}: replica "${replica.id}" has no leader yet`;
        throw new HeddleError("failed_precondition", text);
      }
      return { node: leader.node, source: leader.id, label: leader.id };
    }
    case undefined:
      throw new HeddleError(
        "invalid_input",
        `Cannot ${action}: the request names no replica, shard or node`,
      );
    default:
      return source satisfies never;
  }
}
