/**
 * Engines that something else started, under leases. Heddle has no authority over them: nothing here
 * is a replica, so nothing that places, replaces or stops replicas can see them.
 */
import { formatAddress, parseAddress } from "@heddle/common/address";
import type { ProbeOutcome } from "@heddle/common/engine/probe_outcome";
import type { AttachedState, ToldState } from "@heddle/proto/attached_state";
import type { ClaimRequest } from "@heddle/proto/gen/attach";
import type { Plain } from "@heddle/proto/plain";
import type { EpochMs, NodeId, ReplicaId } from "../ids.ts";

/** How long one that was lost is still shown: long enough for somebody to ask where it went. */
export const SHOWN_LOST_MS = 600_000;

/** What one agent says, as control keeps it. */
export type AttachedClaim = Omit<Plain<ClaimRequest>, "state" | "deploymentId"> & {
  readonly state: ToldState;
};

export interface AttachedEngine {
  /** "<deployment>/<engine>": no replica that Heddle starts has a slash in its id. */
  readonly id: ReplicaId;
  readonly deployment: string;
  readonly engine: string;
  readonly firstClaimedAt: EpochMs;
  /** By the index of the first node that each speaks for. */
  readonly members: ReadonlyMap<number, AttachedMember>;
  /** What control saw through its address; absent until it has looked. */
  readonly proof?: Proof;
}

/** One agent beside it. */
export interface AttachedMember {
  readonly claim: AttachedClaim;
  /** Host from which it called; empty when unknown. */
  readonly from: string;
  readonly claimedAt: EpochMs;
  readonly leaseUntil: EpochMs;
  /** Since when it says this state. */
  readonly since: EpochMs;
  /** The instance before this one; should it return, two agents call themselves the same. */
  readonly replaced?: string;
}

export interface Proof {
  /** What was asked: see `proofSubject`. */
  readonly subject: string;
  readonly outcome: ProbeOutcome;
  readonly at: EpochMs;
}

export function attachedId(deployment: string, engine: string): ReplicaId {
  return `${deployment}/${engine}`;
}

/** The name of one of its nodes. */
export function attachedNode(id: ReplicaId, index: number): NodeId {
  return `${id}/${index}`;
}

/** The member that serves: the one with the lowest node. */
export function servingMember({ members }: AttachedEngine): AttachedMember | undefined {
  const first = [...members.keys()].reduce((a, b) => Math.min(a, b), Infinity);
  return members.get(first);
}

/** host:port at which it is reached; undefined: nobody said, and none could be told. */
export function attachedAddress({ claim, from }: AttachedMember): string | undefined {
  if (claim.endpoint !== "") return formatAddress(parseAddress(claim.endpoint));
  if (from === "" || claim.enginePort === undefined) return undefined;
  return formatAddress({ host: from, port: claim.enginePort });
}

/** What a proof is of. One for another address, name or key says nothing. */
export function proofSubject(member: AttachedMember): string {
  const { model, apiKey } = member.claim;
  return JSON.stringify([attachedAddress(member) ?? "", model, apiKey]);
}

export interface AttachedStanding {
  readonly state: AttachedState;
  /** Closed word and words; empty when all is well. */
  readonly reason: string;
  readonly message: string;
  readonly since: EpochMs;
}

/**
 * What the engine is now. Not ready outweighs degraded, and a lease that ended outweighs both. An
 * agent of another node than the serving one that fell silent makes it degraded: the engine may run.
 */
export function attachedStanding(engine: AttachedEngine, now: EpochMs): AttachedStanding {
  const serving = servingMember(engine);
  if (serving === undefined || serving.leaseUntil <= now) {
    const since = serving?.leaseUntil ?? engine.firstClaimedAt;
    return { state: "lost", reason: "lease_ended", message: "its agent is silent", since };
  }
  const told = (state: ToldState) =>
    [...engine.members.values()].find((each) =>
      each.leaseUntil > now && each.claim.state === state
    );
  const assembling = told("assembling");
  if (assembling !== undefined) return said(assembling);
  const silent = [...engine.members].find(([, each]) => each.leaseUntil <= now);
  if (silent !== undefined) {
    const message = `the agent of its node ${silent[0]} is silent`;
    return { state: "degraded", reason: "node_silent", message, since: silent[1].leaseUntil };
  }
  return said(told("degraded") ?? serving);
}

function said({ claim: { state, reason, message }, since }: AttachedMember): AttachedStanding {
  return { state, reason, message, since };
}
