/** What is told of a shard: the same facts for control, for the log and for metrics. */
import { formatAddress } from "@heddle/common/address";
import type { ShardState as StateWord } from "@heddle/proto/shard_state";
import type { EngineLoad } from "./event.ts";
import { SUSPECTED, suspicionWords } from "./serving/suspicion.ts";
import type { EpochMs, ExitRecord, Shard } from "./shard.ts";

export interface Status {
  readonly state: StateWord;
  readonly reason: string;
  readonly message: string;
  readonly permanent: boolean;
  readonly pid: number | undefined;
  /** Where the leader listens; empty for other ranks and before it does. */
  readonly address: string;
  readonly exit: ExitRecord | undefined;
  readonly logTail: readonly string[];
  readonly inStateMs: number;
  readonly load: EngineLoad;
  readonly maxModelLen: number | undefined;
  readonly progress: string;
}

/** Control lets a shard with this reason take its time. */
const FETCHING_WEIGHTS = "fetching_weights";

/** The address at which a shard's leader listens, or is going to. */
export function leaderAddress(shard: Shard, nodeAddress: string): string {
  return formatAddress({ host: nodeAddress, port: shard.spec.portFirst });
}

/** Says what is true of `shard` now; `load` is the last one measured, for a leader that runs. */
export function statusOf(
  shard: Shard,
  node: { readonly address: string; readonly load: EngineLoad },
  now: EpochMs,
): Status {
  const { state } = shard;
  const words = wordsOf(shard);
  const processes = "processes" in state ? state.processes : [];
  const listens = shard.spec.rank === 0 &&
    (state.kind === "ready" || state.kind === "degraded" || state.kind === "draining");
  const failure = state.kind === "failed"
    ? state.failure
    : state.kind === "stopping" && state.ending.kind === "failed"
    ? state.ending.failure
    : undefined;
  return {
    state: state.kind,
    ...words,
    permanent: failure?.permanent ?? false,
    // The last process is the server; those before it are its sidecars.
    pid: processes.at(-1)?.mainPid ?? processes.at(-1)?.pid,
    address: listens ? leaderAddress(shard, node.address) : "",
    exit: failure?.exit,
    logTail: failure?.logTail ?? [],
    inStateMs: Math.max(0, now - shard.since),
    load: listens ? node.load : {},
    maxModelLen: "maxModelLen" in state ? state.maxModelLen : undefined,
    progress: "progress" in state ? state.progress ?? "" : "",
  };
}

/** True when control has to hear of it at once; the load and the time go with the heartbeat. */
export function differs(a: Status, b: Status): boolean {
  return a.state !== b.state || a.reason !== b.reason || a.message !== b.message ||
    a.pid !== b.pid || a.address !== b.address || a.progress !== b.progress ||
    a.maxModelLen !== b.maxModelLen || a.exit?.code !== b.exit?.code ||
    a.logTail.length !== b.logTail.length;
}

function wordsOf({ spec, state }: Shard): { reason: string; message: string } {
  switch (state.kind) {
    case "ready":
      return state.suspicion === undefined
        ? { reason: "", message: "" }
        : { reason: SUSPECTED, message: suspicionWords(state.suspicion, spec) };
    case "preparing":
      return { reason: state.progress === undefined ? "" : FETCHING_WEIGHTS, message: "" };
    case "degraded":
      return { reason: state.reason, message: state.message };
    case "draining":
      return { reason: state.reason, message: "" };
    case "stopped":
      return { reason: state.reason, message: state.message ?? "" };
    case "failed":
      return { reason: state.failure.reason, message: state.failure.message };
    case "stopping": {
      const { ending } = state;
      const reason = ending.kind === "stopped" ? ending.reason : ending.failure.reason;
      const message = ending.kind === "stopped" ? "" : ending.failure.message;
      if (state.survivors.length === 0) return { reason, message };
      const words = state.survivorWords ?? [];
      const pids = words.length > 0 ? words.join(", ") : `pid ${state.survivors.join(", ")}`;
      const alive = `Still alive after SIGKILL: ${pids}. A driver may hold it; look at ` +
        `\`cat /proc/${state.survivors[0]}/stack\`, and restart the node if it stays`;
      return { reason, message: message === "" ? alive : `${message}. ${alive}` };
    }
    default:
      return { reason: "", message: "" };
  }
}
