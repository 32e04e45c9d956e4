/** The state of one pass while it decides: the draft, and what it has said so far. */
import type { Revision } from "@heddle/proto/revision";
import type { EpochMs, NodeId, ReplicaId, ShardId } from "../ids.ts";
import type { Action, Attempt, ScaleStep, Wait } from "../plan.ts";
import type { Candidate } from "../placing/candidate.ts";
import type { World } from "../world.ts";
import { apply, type Draft } from "./draft.ts";

export interface Pass {
  readonly world: World;
  readonly now: EpochMs;
  readonly draft: Draft;
  readonly actions: Action[];
  readonly waiting: Wait[];
  readonly kept: ShardId[];
  readonly attempts: Attempt[];
  readonly steps: ScaleStep[];
  /** Times at which something changes by itself. */
  readonly wakes: EpochMs[];
  /** Revision of each replica placed in this pass: its shards start with the same one. */
  readonly placedRevisions: Map<ReplicaId, Revision>;
  /** Nodes with what this pass has given away already; built when first needed. */
  candidates: Map<NodeId, Candidate> | undefined;
  /** Placements that this pass may still try. */
  triesLeft: number;
}

/** Records an action in the draft and in the plan. A command is looked at again by its deadline. */
export function act(pass: Pass, action: Action): void {
  apply(pass.draft, action, pass.now);
  pass.actions.push(action);
  if (action.kind === "start_shard" || action.kind === "stop_shard") {
    wakeAt(pass, pass.now + pass.world.timings.commandMs);
  }
}

export function wait(pass: Pass, waited: Wait): void {
  pass.waiting.push(waited);
  if (waited.until !== undefined) wakeAt(pass, waited.until);
}

export function keep(pass: Pass, shard: ShardId): void {
  pass.kept.push(shard);
}

/** Asks for a pass at `at`; what is past is not asked for, or it would never end. */
export function wakeAt(pass: Pass, at: EpochMs): void {
  if (at > pass.now) pass.wakes.push(at);
}
