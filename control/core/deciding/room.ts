/** Tries to place one more replica of a model in this pass. */
import { parseDurationMs } from "@heddle/common/duration";
import type { Model, Profile } from "../catalog.ts";
import { fingerprint } from "../catalog/fingerprint.ts";
import { type Candidate, candidates, candidatesWithout, withShard } from "../placing/candidate.ts";
import { summarise } from "../placing/explain.ts";
import type { PlaceRequest } from "../placing/fits.ts";
import { place, type Placed } from "../placing/place.ts";
import { replicaId, specsOf } from "../placing/spec.ts";
import type { Revision } from "@heddle/proto/revision";
import type { EpochMs, ReplicaId } from "../ids.ts";
import type { Replica, World } from "../world.ts";
import { failedOn, stillBlocked, whatHelps } from "../facts/circumstance.ts";
import { failedStarts } from "../facts/model_reason.ts";
import { sourceHint } from "../facts/source_hint.ts";
import { CLEAN_RECORD, nextRevision } from "./draft.ts";
import { act, type Pass } from "./pass.ts";

export type Tried =
  | { readonly kind: "placed" }
  /** `detail` is the summary that operators see. */
  | { readonly kind: "no_room"; readonly detail: string }
  | { readonly kind: "backoff"; readonly detail: string; readonly until: EpochMs }
  | { readonly kind: "blocked"; readonly detail: string }
  | { readonly kind: "pass_full" };

/** Highest-priority profile that fits; profiles that must not be tried again are passed over. */
export function tryPlace(pass: Pass, model: Model): Tried {
  const record = pass.draft.models.get(model.name) ?? CLEAN_RECORD;
  if (record.backoffUntil !== undefined && pass.now < record.backoffUntil) {
    const why = record.lastFailure ?? "its last start failed";
    return {
      kind: "backoff",
      detail: `${failedStarts(record)}; ${why}`,
      until: record.backoffUntil,
    };
  }
  const open = byPriority(model).filter((profile) => !isBlocked(pass, model, profile));
  if (open.length === 0) {
    const messages = record.blocked.filter(({ node }) => node === undefined)
      .map((each) => `${each.profile}: ${each.message}`).join("; ");
    return { kind: "blocked", detail: `${messages}; ${whatHelps({}, model.name)}` };
  }
  if (pass.triesLeft <= 0) return { kind: "pass_full" };
  pass.triesLeft--;
  const summaries: string[] = [];
  for (const profile of open) {
    const placement = place(requestOf(pass, model, profile), candidatesOf(pass).values());
    if (placement.kind === "placed") {
      take(pass, model, profile, placement);
      pass.attempts.push({ model: model.name });
      return { kind: "placed" };
    }
    const summary = summarise(placement);
    summaries.push(open.length === 1 ? summary : `${profile.name}: ${summary}`);
  }
  const detail = summaries.join("; ");
  pass.attempts.push({ model: model.name, noRoom: detail });
  return { kind: "no_room", detail };
}

/** Profiles by priority, then as the catalog has them. */
export function byPriority(model: Model): readonly Profile[] {
  return model.profiles.toSorted((a, b) => b.priority - a.priority);
}

/** Whether a replica of the model would fit if `leaving` were gone. */
export function fitsWithout(pass: Pass, model: Model, leaving: Replica): boolean {
  const shards = new Set(leaving.shards.map((shard) => shard.id));
  const freed = candidatesWithout(drafted(pass), shards, pass.now);
  return byPriority(model).some((profile) =>
    !isBlocked(pass, model, profile) &&
    place(requestOf(pass, model, profile), freed.values()).kind === "placed"
  );
}

function requestOf(pass: Pass, model: Model, profile: Profile): PlaceRequest {
  const record = pass.draft.models.get(model.name);
  return {
    model,
    profile,
    hint: sourceHint(pass.world, model),
    failedOn: failedOn(pass.world, record, { model, profile }),
  };
}

function isBlocked(pass: Pass, model: Model, profile: Profile): boolean {
  const blocked = pass.draft.models.get(model.name)?.blocked
    .find((each) => each.profile === profile.name && each.node === undefined);
  return blocked !== undefined && stillBlocked(pass.world, model, blocked);
}

function candidatesOf(pass: Pass): Map<string, Candidate> {
  pass.candidates ??= new Map(candidates(drafted(pass), pass.now));
  return pass.candidates;
}

function drafted(pass: Pass): World {
  return { ...pass.world, replicas: pass.draft.replicas };
}

/** Without a salt a restored backup gives a term again, and with it an id that some node still runs. */
function freshId(pass: Pass, model: Model): { revision: Revision; replica: ReplicaId } {
  for (;;) {
    const revision = nextRevision(pass.draft);
    const replica = replicaId(model.name, { ...revision, salt: pass.world.salt });
    if (!pass.draft.replicas.has(replica)) return { revision, replica };
  }
}

function take(pass: Pass, model: Model, profile: Profile, placed: Placed): void {
  const { revision, replica } = freshId(pass, model);
  const shards = specsOf({ model, profile }, placed, replica, {
    stopTimeoutMs: pass.world.timings.stopTimeoutMs,
    weightsVersion: sourceHint(pass.world, model).version,
  });
  act(pass, {
    kind: "place_replica",
    replica,
    model: model.name,
    profile: profile.name,
    fingerprint: fingerprint(model, profile),
    shards,
    scores: { ...placed.scores },
    notes: placed.notes,
    readyDeadline: pass.now + (parseDurationMs(profile.startup_timeout) ?? 0),
    revision,
  });
  pass.placedRevisions.set(replica, revision);
  const ledger = candidatesOf(pass);
  for (const { node, spec } of shards) {
    const candidate = ledger.get(node);
    if (candidate !== undefined) ledger.set(node, withShard(candidate, model.name, spec));
  }
}
