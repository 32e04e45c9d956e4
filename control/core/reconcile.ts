/**
 * From what is to what should be. Level-triggered: it takes no word about what changed. Every shard
 * ends kept, acted on, or explained; whatever waits says for what, and until when.
 */
import type { EpochMs } from "./ids.ts";
import type { Action, Plan, ShardCommand } from "./plan.ts";
import type { World } from "./world.ts";
import { compareRevisions } from "@heddle/proto/revision";
import { nextAttachedChange } from "./attach/publication.ts";
import { classify } from "./deciding/classify.ts";
import { commandShards } from "./deciding/commands.ts";
import { draftOf } from "./deciding/draft.ts";
import { decideModels } from "./deciding/models.ts";
import { nextSilence } from "./facts/node_state.ts";
import { act, keep, type Pass, wakeAt } from "./deciding/pass.ts";
import { failureOf, partialDeadline } from "./facts/replica_judgement.ts";
import { ending, whole } from "./facts/shard_facts.ts";

/** Placements that one pass tries. Each costs some ms on a large fleet, and a pass blocks all else. */
const PLACEMENTS_PER_PASS_MAX = 16;

/** Pure; equal worlds give equal plans, whatever the order of their maps. */
export function reconcile(world: World, now: EpochMs): Plan {
  const pass: Pass = {
    world,
    now,
    draft: draftOf(world),
    actions: [],
    waiting: [],
    kept: [],
    wakes: [],
    attempts: [],
    steps: [],
    placedRevisions: new Map(),
    candidates: undefined,
    triesLeft: PLACEMENTS_PER_PASS_MAX,
  };
  failBroken(pass);
  decideModels(pass);
  forgetGone(pass);
  commandShards(pass);
  wakeForTime(pass);
  // What was decided may have made room, or another's turn: that is for a pass that sees it recorded.
  if (pass.actions.length > 0) wakeAt(pass, now + 1);
  return {
    actions: inOrder(pass.actions),
    waiting: pass.waiting,
    kept: pass.kept,
    attempts: pass.attempts,
    steps: pass.steps,
    ...(pass.wakes.length === 0 ? {} : { wakeAt: pass.wakes.reduce((a, b) => Math.min(a, b)) }),
  };
}

function failBroken(pass: Pass): void {
  for (const id of [...pass.draft.replicas.keys()].sort()) {
    const replica = pass.draft.replicas.get(id);
    if (replica === undefined) continue;
    const failure = failureOf(pass.world, replica, pass.now);
    if (failure !== undefined) act(pass, failure);
  }
}

/**
 * Ends its being shown. After placement, so that what this pass gives away is free by what nodes said
 * and not by what it decides; the next pass may give away the rest.
 */
function forgetGone(pass: Pass): void {
  for (const id of [...pass.draft.replicas.keys()].sort()) {
    const replica = pass.draft.replicas.get(id);
    if (replica === undefined || !ending(replica)) continue;
    const gone = replica.shards.every((shard) =>
      classify(pass.world, replica, shard, pass.now) === "gone"
    );
    if (!gone) continue;
    for (const shard of replica.shards) keep(pass, shard.id);
    act(pass, { kind: "forget_replica", replica: id });
  }
}

function wakeForTime(pass: Pass): void {
  const { world, now } = pass;
  for (const node of world.knownNodes) {
    const at = nextSilence(world, node, now);
    if (at !== undefined) wakeAt(pass, at);
  }
  const attached = nextAttachedChange(world, now);
  if (attached !== undefined) wakeAt(pass, attached);
  for (const replica of pass.draft.replicas.values()) {
    if (ending(replica)) continue;
    if (replica.readyAt === undefined) wakeAt(pass, replica.readyDeadline);
    if (!whole(replica)) wakeAt(pass, partialDeadline(world, replica));
  }
}

/** Decisions first, in the order they were made; then commands, oldest revision first. */
function inOrder(actions: readonly Action[]): readonly Action[] {
  const decided = actions.filter((action) => !isCommand(action));
  const commands = actions.filter(isCommand).sort((a, b) =>
    compareRevisions(a.revision, b.revision)
  );
  return [...decided, ...commands];
}

export function isCommand(action: Action): action is ShardCommand {
  return action.kind === "start_shard" || action.kind === "stop_shard";
}
