/** What each model needs: who should go, who stays after all, and how many new replicas to start. */
import { findModel, type Model } from "../catalog.ts";
import { profileOf } from "../catalog/fingerprint.ts";
import type { Replica, RetireReason, World } from "../world.ts";
import type { WaitReason } from "../plan.ts";
import { desired } from "../facts/desired.ts";
import { scaleDownFrom, scaleStep } from "../facts/scaling.ts";
import { applyStep } from "./draft.ts";
import { drainRetiring, drainStopped, endDrains } from "./drains.ts";
import { act, type Pass, wait, wakeAt } from "./pass.ts";
import { away } from "../facts/replica_judgement.ts";
import { type Tried, tryPlace } from "./room.ts";
import { settled, settleDeadline, unheard } from "../facts/settled.ts";
import { ending } from "../facts/shard_facts.ts";
import { returned, surplusOf } from "./surplus.ts";

/** Decides for every model that the catalog has or that something runs of. */
export function decideModels(pass: Pass): void {
  const byModel = new Map<string, string[]>();
  for (const replica of pass.draft.replicas.values()) {
    byModel.set(replica.model, [...(byModel.get(replica.model) ?? []), replica.id]);
  }
  const names = new Set([
    ...pass.world.catalog.catalog.models.map((model) => model.name),
    ...byModel.keys(),
  ]);
  if (pass.world.catalog.revision === 0) {
    for (const name of [...names].sort()) {
      waitFor(pass, name, "settling", "no catalog has ever been applied, so nothing is taken away");
    }
    return;
  }
  if (!settled(pass.world, pass.now)) {
    const missing = unheard(pass.world);
    for (const name of [...names].sort()) {
      waitFor(pass, name, "settling", `${missing.length} known nodes have not registered yet`);
    }
    wakeAt(pass, settleDeadline(pass.world));
    return;
  }
  for (const name of inTurn(pass, names)) {
    decideModel(pass, name, (byModel.get(name) ?? []).sort());
  }
}

/** Those that waited longest for a try come first, so that a full pass starves nobody. */
function inTurn(pass: Pass, names: ReadonlySet<string>): readonly string[] {
  const triedAt = (name: string) => pass.world.models.get(name)?.lastAttemptAt ?? 0;
  return [...names].sort((a, b) => triedAt(a) - triedAt(b) || (a < b ? -1 : 1));
}

function decideModel(pass: Pass, name: string, ids: readonly string[]): void {
  const model = exactModel(pass, name);
  const paused = pass.world.decisions.paused.get(name);
  if (paused !== undefined) {
    drainStopped(pass, ids);
    endDrains(pass, ids);
    return waitFor(pass, name, "paused", `by ${paused.by}: ${paused.reason || "no reason given"}`);
  }
  // Before the first catalog nobody has said what should run, so nothing of what does is unwanted.
  if (model === undefined && pass.world.catalog.revision === 0) {
    return waitFor(pass, name, "no_catalog", "it runs, and no catalog was ever applied");
  }
  markRetiring(pass, model, ids);
  if (model !== undefined) scale(pass, model, ids);
  const { count, until, reason } = model === undefined
    ? { count: 0, until: undefined, reason: "asleep" }
    : desired(drafted(pass), model, fleetOf(pass, ids).live.length, pass.now);
  if (until !== undefined) wakeAt(pass, until);
  keepSome(pass, ids, count);
  retireSurplus(pass, name, ids, { count, atOnce: reason === "override" });
  const tried = model === undefined ? undefined : startSome(pass, model, ids, count);
  if (tried !== undefined) explainTried(pass, name, tried);
  drainRetiring(pass, model, { ids, count, tried });
  endDrains(pass, ids);
}

/** Takes the step that demand calls for. */
function scale(pass: Pass, model: Model, ids: readonly string[]): void {
  const { live } = fleetOf(pass, ids);
  const ready = live.filter((each) => each.readyAt !== undefined).length;
  const found = live.filter((each) => each.adopted && !returned(pass.world, each)).length;
  const fleet = { live: live.length, ready, found };
  const step = scaleStep(drafted(pass), model, fleet, pass.now);
  wakeAt(pass, scaleDownFrom(pass.world));
  if (step === undefined) return;
  applyStep(pass.draft, step, pass.now);
  pass.steps.push(step);
}

function drafted(pass: Pass): World {
  return { ...pass.world, models: pass.draft.models };
}

/** A model of the catalog by its own name; an alias is not what replicas are of. */
function exactModel(pass: Pass, name: string): Model | undefined {
  const model = findModel(pass.world.catalog.catalog, name);
  return model?.name === name ? model : undefined;
}

interface Fleet {
  /** Not on the way out, and on no lost node. */
  readonly live: readonly Replica[];
  /** Live and meant to stay. */
  readonly good: readonly Replica[];
  /** Live, to go, and still taking requests. */
  readonly retiring: readonly Replica[];
  /** On the way out because of a decision, not a failure. */
  readonly leaving: readonly Replica[];
}

/** The model's replicas as the draft has them now. */
function fleetOf(pass: Pass, ids: readonly string[]): Fleet {
  const all = ids.flatMap((id) => pass.draft.replicas.get(id) ?? []);
  const live = all.filter((each) => !ending(each) && !away(pass.world, each, pass.now));
  return {
    live,
    good: live.filter((each) => each.retiring === undefined && each.draining === undefined),
    retiring: live.filter((each) => each.retiring !== undefined && each.draining === undefined),
    leaving: all.filter((each) =>
      each.failure === undefined && (each.draining !== undefined || each.stopping !== undefined)
    ),
  };
}

/** Facts that make a replica go, or that made it go and hold no more. */
function markRetiring(pass: Pass, model: Model | undefined, ids: readonly string[]): void {
  for (const replica of fleetOf(pass, ids).live) {
    const reason = factualReason(pass, model, replica);
    if (reason !== undefined) {
      const before = replica.retiring?.reason;
      if (before === undefined || (before !== reason && !chosen(before))) {
        act(pass, { kind: "retire_replica", replica: replica.id, reason });
      }
    } else if (replica.retiring !== undefined && !chosen(replica.retiring.reason)) {
      act(pass, { kind: "keep_replica", replica: replica.id });
    }
  }
}

function factualReason(
  pass: Pass,
  model: Model | undefined,
  replica: Replica,
): RetireReason | undefined {
  if (model === undefined) return "model_removed";
  const decided = pass.world.decisions.replicas.get(replica.id)?.kind;
  if (decided === "stop" || decided === "stop_at_once") return "operator_stop";
  const drained = replica.shards.some((shard) =>
    pass.world.decisions.nodes.get(shard.node)?.kind === "drain"
  );
  // Before a changed profile: that one may wait for as long as it likes, an operator may not.
  if (drained) return "node_draining";
  if (decided === "restart") return "operator_restart";
  return profileOf(model, replica.fingerprint) === undefined ? "profile_changed" : undefined;
}

/** Reasons that are a choice among equals, taken back when the number is wanted again. */
function chosen(reason: RetireReason): boolean {
  return reason === "surplus" || reason === "rebuilt_elsewhere";
}

function keepSome(pass: Pass, ids: readonly string[], count: number): void {
  const { live, good } = fleetOf(pass, ids);
  const spared = live
    .filter((each) => each.retiring !== undefined && chosen(each.retiring.reason))
    .slice(0, Math.max(0, count - good.length));
  for (const { id } of spared) act(pass, { kind: "keep_replica", replica: id });
}

function retireSurplus(
  pass: Pass,
  name: string,
  ids: readonly string[],
  want: { readonly count: number; readonly atOnce: boolean },
): void {
  const { good } = fleetOf(pass, ids);
  const { go, held } = surplusOf(pass.world, good, want, pass.now);
  for (const { replica, reason } of go) {
    act(pass, { kind: "retire_replica", replica: replica.id, reason });
  }
  if (held !== undefined) {
    const detail = `${held.count} more than the ${want.count} wanted; they are left alone for now`;
    waitFor(pass, name, "scale_down_window", detail, held.until);
  }
}

/** Starts what is missing. The last answer is given when something could not be started. */
function startSome(
  pass: Pass,
  model: Model,
  ids: readonly string[],
  count: number,
): Tried | undefined {
  const { good, retiring, leaving } = fleetOf(pass, ids);
  const outdated = retiring.filter((each) => each.retiring?.reason === "profile_changed");
  const others = retiring.length - outdated.length;
  const shortage = Math.max(0, count - good.length - retiring.length);
  const coming = good.some((each) => each.readyAt === undefined);
  // One new for one old at a time, and only once the one before is gone for good.
  const full = good.length + retiring.length > count;
  const surge = outdated.length > 0 && !coming && !full && leaving.length === 0 ? 1 : 0;
  const starts = Math.min(count - good.length, shortage + others + surge);
  for (let started = 0; started < starts; started++) {
    const tried = tryPlace(pass, model);
    if (tried.kind !== "placed") return tried;
  }
  return undefined;
}

function explainTried(pass: Pass, name: string, tried: Tried): void {
  switch (tried.kind) {
    case "placed":
      return;
    case "no_room":
      return waitFor(pass, name, "no_room", tried.detail);
    case "backoff":
      return waitFor(pass, name, "backoff", tried.detail, tried.until);
    case "blocked":
      return waitFor(pass, name, "blocked", tried.detail);
    case "pass_full":
      return waitFor(pass, name, "pass_full", "its turn comes in the next pass", pass.now + 1);
  }
}

function waitFor(pass: Pass, name: string, why: WaitReason, detail: string, until?: number): void {
  wait(pass, {
    subject: "model",
    id: name,
    why,
    detail,
    ...(until === undefined ? {} : { until }),
  });
}
