/** `ctl replicas`: every running copy of a model, its shards and their nodes. */
import { buildCommand } from "@stricli/core";
import { formatDurationMs } from "@heddle/common/duration";
import { type ReplicaView, ReplicaViewSchema, type ShardView } from "@heddle/proto/gen/admin";
import type { ShardUsage } from "@heddle/proto/gen/types";
import { decodeReplicaState } from "@heddle/proto/replica_state";
import { attachedOn, attachedState } from "../attach/words.ts";
import { decodeShardState } from "@heddle/proto/shard_state";
import { CALL_TIMEOUT_MS } from "../../client.ts";
import {
  type CtlContext,
  list,
  LIST_ALIASES,
  LIST_FLAGS,
  type ListFlags,
  outputOf,
} from "../../command.ts";
import { usagesOf, usageWords } from "../nodes/load.ts";
import { fieldsOf, toRecord } from "../../record.ts";
import { joinReasons, reasonText } from "../../status/reason_text.ts";
import type { Listing } from "../../table.ts";

interface ReplicaFlags extends ListFlags {
  readonly model?: string;
}

export const listReplicas = buildCommand({
  docs: { brief: "List replicas with their shards" },
  parameters: {
    flags: {
      ...LIST_FLAGS,
      model: {
        kind: "parsed",
        parse: String,
        optional: true,
        placeholder: "name",
        brief: "Only replicas of this model (name or alias)",
      },
    },
    aliases: LIST_ALIASES,
  },
  async func(this: CtlContext, flags: ReplicaFlags) {
    await list(this, flags, async (client) => {
      const request = { model: flags.model ?? "" };
      const answer = await client.listReplicas(request, { timeoutMs: CALL_TIMEOUT_MS });
      if (outputOf(flags) !== "wide") return replicaListing(answer.replicas);
      const { nodes } = await client.listNodes({}, { timeoutMs: CALL_TIMEOUT_MS });
      return replicaListing(answer.replicas, usagesOf(nodes));
    });
  },
});

/** The table of replicas; `usages` are what shards take, by their id, as far as that is known. */
export function replicaListing(
  replicas: readonly ReplicaView[],
  usages: ReadonlyMap<string, ShardUsage> = new Map(),
): Listing<ReplicaView> {
  return {
    rows: replicas,
    empty: "No replica runs. See why with: heddle explain MODEL",
    record: (replica) => toRecord(ReplicaViewSchema, replica),
    fields: fieldsOf(ReplicaViewSchema),
    columns: [
      { title: "REPLICA", cell: (replica) => replica.replicaId },
      { title: "MODEL", cell: (replica) => replica.model },
      { title: "PROFILE", cell: (replica) => replica.profile },
      {
        title: "STATE",
        cell: (replica) => attachedState(replica.attached) ?? decodeReplicaState(replica.state),
      },
      { title: "FOR", cell: (replica) => formatDurationMs(Number(replica.inStateMs)) },
      { title: "NODES", cell: (replica) => replica.shards.map(shardPlace).join(", ") },
      { title: "IN FLIGHT", cell: (replica) => replica.inFlight?.toString() ?? "unknown" },
      { title: "REASON", cell: reasonOf },
      { title: "ENGINE", cell: (replica) => replica.engine, wide: true },
      { title: "FABRIC", cell: (replica) => replica.fabric, wide: true },
      { title: "ADDRESS", cell: (replica) => replica.address, wide: true },
      {
        title: "PIDS",
        cell: (replica) => replica.shards.map((shard) => shard.pid?.toString() ?? "-").join(", "),
        wide: true,
      },
      {
        title: "TAKES",
        cell: (replica) =>
          replica.shards.map((shard) => usageWords(usages.get(shard.shardId)) || "?").join(" | "),
        wide: true,
      },
      { title: "HCAS", cell: (replica) => replica.shards.map(hcasOf).join(" | "), wide: true },
    ],
  };
}

// "h100-a[0-7] ready": one look must tell which part of a replica is behind.
function shardPlace(shard: ShardView): string {
  const gpus = shard.gpus.length === 0 ? "" : `[${ranges(shard.gpus)}]`;
  return `${shard.node}${gpus} ${decodeShardState(shard.state)}`;
}

/** "0-3,6": consecutive numbers as ranges. */
export function ranges(numbers: readonly number[]): string {
  const sorted = numbers.toSorted((a, b) => a - b);
  const groups: [number, number][] = [];
  for (const number of sorted) {
    const last = groups.at(-1);
    if (last !== undefined && last[1] === number - 1) last[1] = number;
    else groups.push([number, number]);
  }
  return groups.map(([first, last]) => first === last ? `${first}` : `${first}-${last}`).join(",");
}

function hcasOf(shard: ShardView): string {
  return shard.hcas.map((hca) => `${hca.name}:${hca.port}`).join(",");
}

// What control says of the whole mostly is what one shard says.
function reasonOf(replica: ReplicaView): string {
  const shards = replica.shards.map(({ reason, message, progress }) =>
    joinReasons([reasonText(reason, message), progress], ": ")
  );
  return joinReasons([attachedOn(replica.attached) ?? "", replica.reason, ...shards]);
}
