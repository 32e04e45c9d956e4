/** Turns a placement into what each agent is told. */
import type { Plain } from "@heddle/proto/plain";
import type { Hca, ShardSpec } from "@heddle/proto/gen/types";
import { parseDurationMs, parseSizeBytes } from "@heddle/common/duration";
import type { Revision } from "@heddle/proto/revision";
import { fingerprint } from "../catalog/fingerprint.ts";
import type { NodeId, ReplicaId, ShardId } from "../ids.ts";
import type { PlaceRequest } from "./fits.ts";
import type { Placed } from "./place.ts";
import { wantOf } from "./weights.ts";

/** Longest part of a unit name that a model's name may take: systemd allows 255 in all. */
const SLUG_LENGTH_MAX = 60;

export interface PlacedShard {
  readonly node: NodeId;
  readonly spec: Plain<ShardSpec>;
}

/** "qwen-7b-3bkvdp-12" for the replica that term 3, with that salt, placed with its decision 12. */
export function replicaId(model: string, made: Revision & { readonly salt: string }): ReplicaId {
  const slug = model.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-+|-+$/g, "")
    .slice(0, SLUG_LENGTH_MAX).replace(/-+$/, "");
  return `${slug}-${made.term}${made.salt}-${made.sequence}`;
}

export function shardId(replica: ReplicaId, rank: number): ShardId {
  return `${replica}-${rank}`;
}

export interface SpecOptions {
  readonly stopTimeoutMs: number;
  /** Which version of the source nodes fetch; empty: what they find. */
  readonly weightsVersion: string;
}

/**
 * The entry of the GID table that carries RoCE v2 on all of these ports; undefined when they differ,
 * or one does not tell, or is InfiniBand: one number for all of them would then be wrong for some.
 */
function commonGidIndex(
  hcas: readonly Pick<Plain<Hca>, "roceGidIndex">[],
): number | undefined {
  const [first] = hcas;
  return hcas.every(({ roceGidIndex }) => roceGidIndex === first?.roceGidIndex)
    ? first?.roceGidIndex
    : undefined;
}

/** The shards of a placement, by rank; rank 0 leads. */
export function specsOf(
  request: PlaceRequest,
  placed: Placed,
  replica: ReplicaId,
  { stopTimeoutMs, weightsVersion }: SpecOptions,
): readonly PlacedShard[] {
  const { model, profile } = request;
  // The simulated engine has no weights.
  const weights = profile.engine === "sim" ? undefined : wantOf(model, weightsVersion);
  const [lead] = placed.seats;
  const gidIndex = commonGidIndex(placed.seats.flatMap(({ hcas }) => hcas));
  return placed.seats.map((seat, rank) => ({
    node: seat.candidate.name,
    spec: {
      shardId: shardId(replica, rank),
      replicaId: replica,
      rank,
      shardCount: placed.seats.length,
      attempt: 1,
      model: model.name,
      profile: profile.name,
      fingerprint: fingerprint(model, profile),
      engine: profile.engine,
      engineVersion: profile.engine_version,
      source: model.source,
      ...(weights === undefined ? {} : { weights }),
      tp: profile.tp,
      pp: profile.pp,
      dp: profile.dp,
      gpus: seat.choice.gpus.map(({ index, uuid }) => ({ index, uuid })),
      fabric: seat.fabric,
      hcas: seat.hcas.map(({ name, port }) => ({ name, port })),
      ...(gidIndex === undefined ? {} : { roceGidIndex: gidIndex }),
      portFirst: seat.ports.first,
      portCount: seat.ports.count,
      leaderAddress: lead?.candidate.address ?? "",
      leaderPort: lead?.ports.first ?? 0,
      args: profile.args,
      env: profile.env,
      launchMode: profile.launch_mode,
      startupTimeoutMs: parseDurationMs(profile.startup_timeout) ?? 0,
      stopTimeoutMs,
      unsafeEnv: profile.unsafe_env,
      liveness: {
        tokenTimeoutMs: parseDurationMs(profile.liveness.token_timeout) ?? 0,
        hungAfterMs: parseDurationMs(profile.liveness.hung_after) ?? 0,
        failAfterMs: parseDurationMs(profile.liveness.fail_after) ?? 0,
      },
      memoryBytes: BigInt(profile.memory === undefined ? 0 : parseSizeBytes(profile.memory) ?? 0),
    },
  }));
}
