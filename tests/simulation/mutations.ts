/**
 * Mistakes that control could make, each as a change of its source, with the invariant that has to
 * notice. A simulation that lives through one of them proves nothing.
 */
import type { Invariant } from "../../control/core/testing/invariants.ts";

export interface Edit {
  /** Below control/core. */
  readonly file: string;
  /** Stands there exactly once. */
  readonly find: string;
  readonly put: string;
}

export interface Mutation {
  readonly name: string;
  readonly invariant: Invariant;
  readonly edits: readonly Edit[];
}

export const MUTATIONS: readonly Mutation[] = [
  {
    name: "drop_fabric_rule",
    invariant: "one_fabric",
    edits: [{
      file: "placing/place.ts",
      find: "const seats = members.flatMap((member) => seatOn(request, member, fabric) ?? []);",
      put: `const seats = members.length === 0 ? [] : fitting.flatMap((member) =>
        seatOn(request, member, member.inventory.fabrics[0]?.name ?? fabric) ?? []);`,
    }],
  },
  {
    name: "take_any_adapter",
    invariant: "own_hcas",
    edits: [{
      file: "placing/candidate.ts",
      find: "hca.fabric === fabric && hca.active",
      put: 'fabric !== "" && hca.active',
    }],
  },
  {
    name: "mix_classes",
    invariant: "one_class",
    edits: [{
      file: "placing/fits.ts",
      find:
        "if (inventory.gpus.some((gpu) => gpu.gpuClass === profile.gpu_class)) return undefined;",
      put: "if (inventory.gpus.length > 0) return undefined;",
    }, {
      file: "placing/fits.ts",
      find:
        "return freeGpus.reduce((count, gpu) => gpu.gpuClass === gpuClass ? count + 1 : count, 0);",
      put: "return gpuClass === '' ? 0 : freeGpus.length;",
    }, {
      file: "placing/fits.ts",
      find: "return candidate.freeGpus.filter((gpu) => gpu.gpuClass === gpuClass);",
      put: "return candidate.freeGpus.filter(() => gpuClass !== '');",
    }],
  },
  {
    name: "free_gpus_early",
    invariant: "gpu_used_once",
    edits: [{
      file: "facts/shard_facts.ts",
      find: "return !ended(shard);",
      put: "return !ended(shard) && shard.status?.state !== 'stopping';",
    }],
  },
  {
    name: "forget_node_of_adopted",
    invariant: "gpu_used_once",
    edits: [{
      file: "observing/adopt.ts",
      find: "if (there === undefined) {",
      put: "if (there === undefined) {\n    if (now > 0) return world;",
    }],
  },
  {
    name: "place_before_settled",
    invariant: "settled_first",
    edits: [{
      file: "facts/settled.ts",
      find: "return now >= settleDeadline(world) || unheard(world).length === 0;",
      put: "return now >= 0 || unheard(world).length === 0;",
    }],
  },
  {
    name: "withdraw_unsettled",
    invariant: "endpoint_kept",
    edits: [{
      file: "publish.ts",
      find: `reach(world, node, now) === "lost" || (world.nodes.has(node) && !undecided.has(node))`,
      put: `reach(world, node, now) === "lost" || undecided.size >= 0`,
    }],
  },
  {
    name: "ignore_term",
    invariant: "desired_reached",
    edits: [{
      file: "observing/registered.ts",
      find: "return ours ? world :",
      put: "return highest.term >= 0 || ours ? world :",
    }, {
      // What routers follow tells of it too.
      file: "observing/router.ts",
      find: "compareRevisions(applied, world) > 0 ?",
      put: "compareRevisions(applied, world) > 0 && now < 0 ?",
    }],
  },
  {
    name: "stop_while_in_flight",
    invariant: "request_kept",
    edits: [{
      file: "deciding/drain_end.ts",
      find: "return detail === undefined\n    ? { kind:",
      put: "return detail === undefined || now > 0\n    ? { kind:",
    }],
  },
  {
    name: "start_on_cordoned",
    invariant: "schedulable_node",
    edits: [{
      file: "placing/fits.ts",
      find: `return reject(name, "cordoned", "an operator placed a cordon on it");`,
      put: "return undefined;",
    }],
  },
  {
    name: "ignore_labels",
    invariant: "selected_node",
    edits: [{ file: "placing/fits.ts", find: "if (have !== want) {", put: 'if (have === "") {' }],
  },
  {
    name: "forget_operators_labels",
    invariant: "selected_node",
    edits: [{
      file: "placing/candidate.ts",
      find: "labels: { ...inventory.labels, ...world.decisions.labels.get(node.name) },",
      put: "labels: inventory.labels,",
    }],
  },
  {
    name: "fail_the_unreachable",
    invariant: "healthy_kept",
    edits: [{
      file: "facts/replica_judgement.ts",
      find:
        `const lost = replica.shards.find((shard) => reach(world, shard.node, now) === "lost");`,
      put:
        `const lost = replica.shards.find((shard) => reach(world, shard.node, now) !== "reachable");`,
    }],
  },
  {
    name: "leave_the_rest_running",
    invariant: "whole_replica",
    edits: [{
      file: "deciding/commands.ts",
      find: "if (replica === undefined) continue;",
      put: "if (replica === undefined || replica.failure !== undefined) continue;",
    }],
  },
  {
    name: "give_ids_again",
    invariant: "id_used_once",
    edits: [{
      file: "placing/spec.ts",
      find: "${made.term}${made.salt}-${made.sequence}",
      put: "${made.term}-${made.sequence}",
    }],
  },
  {
    name: "never_back_off",
    invariant: "no_hot_loop",
    edits: [{
      file: "deciding/room.ts",
      find: "record.backoffUntil !== undefined && pass.now < record.backoffUntil",
      put: "record.backoffUntil !== undefined && pass.now < 0",
    }],
  },
  {
    name: "retry_what_failed_for_good",
    invariant: "permanent_kept",
    edits: [{
      file: "deciding/draft.ts",
      find:
        "blocked: action.permanent ? blockedWith(draft, replica, record, action) : record.blocked,",
      put: "blocked: record.blocked,",
    }],
  },
  {
    name: "forget_what_failed_for_good",
    invariant: "permanent_kept",
    edits: [{
      file: "deciding/failures.ts",
      find: "return failedStarts === 0\n    ? failures\n    :",
      put: "return failedStarts >= 0\n    ? { ...failures, blocked: [] }\n    :",
    }],
  },
  {
    name: "never_retry_what_changed",
    invariant: "desired_reached",
    edits: [{
      file: "facts/circumstance.ts",
      find: "return now.every((each) => before.has(textOf(each))) &&",
      put: "return now.every((each) => before.size >= 0 || before.has(textOf(each))) ||",
    }],
  },
  {
    name: "remove_wanted_weights",
    invariant: "weights_kept",
    edits: [{
      file: "weights/unused.ts",
      find: "if (asked.wants.has(keyOf(weights)) || asked.names(weights.folder)) return;",
      put: "if (asked.names(weights.folder)) return;",
    }],
  },
  {
    name: "forget_who_uses_weights",
    invariant: "weights_kept",
    edits: [{
      file: "weights/unused.ts",
      find: "if (wants || words(shard).includes(folder)) return shard.id;",
      put: "if (words(shard).includes(folder)) return shard.id;",
    }],
  },
  {
    name: "never_make_room",
    invariant: "desired_reached",
    edits: [{
      file: "weights/make_room.ts",
      find: "if (ripe.size === 0) return [];",
      put: "if (ripe.size === 0 || now > 0) return [];",
    }],
  },
  {
    name: "back_off_for_too_long",
    invariant: "desired_in_time",
    edits: [{
      file: "deciding/draft.ts",
      find: "backoffUntil: now + backoffMs(",
      put: "backoffUntil: now + 100 * backoffMs(",
    }],
  },
];
