/** Makes a plan's decisions part of the world, before anything of it is sent. */
import type { Revision } from "@heddle/proto/revision";
import { apply, applyStep, CLEAN_RECORD, draftOf } from "./draft.ts";
import type { EpochMs } from "../ids.ts";
import type { Action, Plan } from "../plan.ts";
import type { World } from "../world.ts";

/** The world in which every command of the plan is in flight. The same world when it decides nothing. */
export function record(world: World, plan: Plan, now: EpochMs): World {
  if (plan.actions.length + plan.attempts.length + plan.steps.length === 0) return world;
  const draft = draftOf(world);
  for (const action of plan.actions) {
    apply(draft, action, now);
    const revision = revisionOf(action);
    if (revision?.term === world.term && revision.sequence > draft.sequence) {
      draft.sequence = revision.sequence;
    }
  }
  for (const { model, noRoom } of plan.attempts) {
    const { noRoom: _before, ...rest } = draft.models.get(model) ?? CLEAN_RECORD;
    draft.models.set(model, {
      ...rest,
      lastAttemptAt: now,
      ...(noRoom === undefined ? {} : { noRoom }),
    });
  }
  for (const step of plan.steps) applyStep(draft, step, now);
  return { ...world, replicas: draft.replicas, models: draft.models, sequence: draft.sequence };
}

function revisionOf(action: Action): Revision | undefined {
  return "revision" in action ? action.revision : undefined;
}
