/** Builders for tests: a spec and shards in every state, with honest defaults. */
import { create } from "@bufbuild/protobuf";
import { ShardSpecSchema } from "@heddle/proto/gen/types";
import type { ProcessRef, Shard, ShardSpec, ShardState, StateKind, StateOf } from "./shard.ts";

export function aSpec(changes: Partial<ShardSpec> = {}): ShardSpec {
  return {
    ...create(ShardSpecSchema, {
      shardId: "r1/0",
      replicaId: "r1",
      rank: 0,
      shardCount: 1,
      attempt: 1,
      model: "demo",
      profile: "p",
      fingerprint: "f1",
      engine: "sim",
      source: "demo",
      tp: 1,
      pp: 1,
      dp: 1,
      portFirst: 20_000,
      portCount: 256,
      leaderAddress: "10.0.0.1",
      leaderPort: 20_000,
      startupTimeoutMs: 100_000,
      stopTimeoutMs: 10_000,
    }),
    ...changes,
  };
}

export const PROCESS: ProcessRef = { name: "server", handle: "h1", pid: 100, started: "5" };

const STATES: { readonly [K in StateKind]: StateOf<K> } = {
  preparing: { kind: "preparing", deadline: 100_000 },
  starting: {
    kind: "starting",
    planned: [{ name: "server", handle: "h1" }],
    deadline: 100_000,
  },
  loading: {
    kind: "loading",
    processes: [PROCESS],
    deadline: 100_000,
    nextProbeAt: 300,
    progress: "",
  },
  ready: { kind: "ready", processes: [PROCESS], nextProbeAt: 60_000, failedProbes: 0 },
  degraded: {
    kind: "degraded",
    processes: [PROCESS],
    nextProbeAt: 10_000,
    reason: "no_token",
    message: "gives no token",
  },
  draining: {
    kind: "draining",
    processes: [PROCESS],
    reason: "drained",
    until: 30_000,
    nextMeasureAt: 0,
  },
  stopping: {
    kind: "stopping",
    planned: [],
    processes: [PROCESS],
    ending: { kind: "stopped", reason: "drained" },
    killAt: 10_000,
    killed: false,
    nextCountAt: 500,
    survivors: [],
  },
  stopped: { kind: "stopped", reason: "drained" },
  failed: {
    kind: "failed",
    failure: { reason: "process_exited", message: "gone", permanent: false, logTail: [] },
  },
};

/** A shard in the state of that kind, as it is at time 0. */
export function aShard<K extends StateKind>(
  kind: K,
  changes: { readonly state?: Partial<StateOf<K>>; readonly spec?: Partial<ShardSpec> } = {},
): Shard {
  const state: ShardState = { ...STATES[kind], ...changes.state };
  return {
    spec: aSpec(changes.spec),
    revision: { term: 1, sequence: 1 },
    apiKey: "sk-heddle-replica-secret",
    since: 0,
    state,
  };
}
