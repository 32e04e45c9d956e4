/** What a measurement is of: the replicas of this fleet that take its requests. Pure. */
import type { ReplicaView } from "@heddle/proto/gen/admin";
import { HeddleError } from "@heddle/proto/error";
import { decodeReplicaState } from "@heddle/proto/replica_state";

export interface Subject {
  /** Those that are measured; none when their profiles differ, and nothing can be said of one. */
  readonly replicaIds: readonly string[];
  /** The one that every request must go to; undefined when routers choose. */
  readonly only: string | undefined;
  readonly words: string;
}

export interface Asked {
  readonly model: string;
  readonly profile: string | undefined;
  readonly replica: string | undefined;
}

/** Throws `not_found` when nothing that was asked for is ready. */
export function subjectOf(replicas: readonly ReplicaView[], asked: Asked): Subject {
  const ready = replicas.filter(({ state }) => decodeReplicaState(state) === "ready")
    .toSorted((a, b) => a.replicaId < b.replicaId ? -1 : 1);
  const refuse = () => nothingReady({ ready, all: replicas }, asked);
  if (asked.replica !== undefined || asked.profile !== undefined) {
    const one = oneOf(ready, asked);
    if (one === undefined) throw refuse();
    return one;
  }
  const [first] = ready;
  if (first === undefined) throw refuse();
  const profiles = [...new Set(ready.map(({ profile }) => profile))];
  const count = ready.length === 1 ? "its one replica" : `all ${ready.length} replicas`;
  return profiles.length > 1
    ? {
      replicaIds: [],
      only: undefined,
      words:
        `${count}, of the profiles ${profiles.join(", ")}: what one of them carries cannot be ` +
        "told, so nothing is stored; measure one with --profile",
    }
    : {
      replicaIds: ready.map(({ replicaId }) => replicaId),
      only: undefined,
      words: `${count} of profile ${first.profile}`,
    };
}

function oneOf(ready: readonly ReplicaView[], asked: Asked): Subject | undefined {
  const found = ready.find(({ replicaId, profile }) =>
    (asked.replica === undefined || replicaId === asked.replica) &&
    (asked.profile === undefined || profile === asked.profile)
  );
  if (found === undefined) return undefined;
  const { replicaId, profile } = found;
  return {
    replicaIds: [replicaId],
    only: replicaId,
    words: `replica ${replicaId} of profile ${profile}`,
  };
}

function nothingReady(
  { ready, all }: { readonly ready: readonly ReplicaView[]; readonly all: readonly ReplicaView[] },
  { model, profile, replica }: Asked,
) {
  const what = [
    ...(replica === undefined ? [] : [` called "${replica}"`]),
    ...(profile === undefined ? [] : [` of profile "${profile}"`]),
  ].join("");
  const none = `No replica${what} of ${model} is ready`;
  if (ready.length > 0) {
    const these = ready.map((each) => `${each.replicaId} (${each.profile})`).join(", ");
    return new HeddleError("not_found", `${none}; these are: ${these}`);
  }
  const there = all.map(({ replicaId, state }) => `${replicaId} is ${decodeReplicaState(state)}`);
  const have = there.length === 0 ? "it has none" : there.join(", ");
  return new HeddleError("not_found", `${none}: ${have}. Why: heddle explain ${model}`);
}
