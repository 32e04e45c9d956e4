/**
 * What a permanent failure depends on, as a hash: while it is the same, trying again cannot help. A
 * failure of the profile depends on the profile, the versions of its engine in the fleet, and where
 * its weights lie, and keeps the profile from starting anywhere. A failure of a node depends on what
 * is mended there, and keeps the profile from that node alone.
 */
import { hash32 } from "@heddle/common/backoff";
import type { Plain } from "@heddle/proto/plain";
import type { Inventory } from "@heddle/proto/gen/types";
import type { Model, Profile } from "../catalog.ts";
import { fingerprint } from "../catalog/fingerprint.ts";
import type { NodeId } from "../ids.ts";
import { weightsBytes } from "../placing/weights.ts";
import type { BlockedProfile, ModelRecord, Node, World } from "../world.ts";

/** Of an agent's reasons for a failure those whose remedy is on the node, and no other node's. */
const OF_A_NODE: ReadonlySet<string> = new Set([
  "compiler_missing",
  "cpu_instruction_missing",
  "cuda_compat_mismatch",
  "cuda_library_missing",
  "disk_full",
  "driver_older_than_toolkit",
  "driver_too_old",
  "engine_build_mixed",
  "engine_not_executable",
  "fabric_manager_down",
  "glibc_too_old",
  "gpu_architecture_not_built",
  "hostname_is_loopback",
  "library_missing",
  "model_file_damaged",
  "model_file_missing",
  "model_inspection_failed",
  "model_not_cached",
  "no_gpu_visible",
  "permission_denied",
  "python_module_missing",
  "ray_version_mismatch",
]);

/** Those that come and go by themselves: they are no remedy. */
const PASSING_PROBLEMS: ReadonlySet<string> = new Set([
  "foreign_process",
  "gpu_pcie_narrow",
  "gpu_throttled",
  "gpu_xid",
  "hca_link_unstable",
]);

const GIB = 2 ** 30;

/** What failed, as far as it matters for trying again. */
export interface Cause {
  /** Closed word of the agent. */
  readonly reason: string;
  readonly node: NodeId;
}

/** A profile as blocked by a failure now: everywhere, or on the node whose failure it is. */
export function blockedBy(
  world: World,
  { model, profile, cause, message }: {
    readonly model: Model;
    readonly profile: Profile;
    readonly cause: Cause | undefined;
    readonly message: string;
  },
): BlockedProfile {
  const node = cause !== undefined && OF_A_NODE.has(cause.reason) ? cause.node : undefined;
  const blocked = {
    profile: profile.name,
    message,
    ...(node === undefined ? {} : { node, reason: cause?.reason ?? "" }),
  };
  return { ...blocked, circumstance: circumstance(world, { model, profile, blocked }) };
}

/** Whether nothing has changed that could help since the profile was blocked. */
export function stillBlocked(
  world: World,
  model: Model,
  blocked: BlockedProfile,
): boolean {
  const profile = model.profiles.find(({ name }) => name === blocked.profile);
  return profile !== undefined &&
    blocked.circumstance === circumstance(world, { model, profile, blocked });
}

/** Nodes on which the profile must not be tried again yet, each with what happened there. */
export function failedOn(
  world: World,
  record: ModelRecord | undefined,
  { model, profile }: { readonly model: Model; readonly profile: Profile },
): ReadonlyMap<NodeId, string> {
  const there = new Map<NodeId, string>();
  for (const blocked of record?.blocked ?? []) {
    if (blocked.node === undefined || blocked.profile !== profile.name) continue;
    if (stillBlocked(world, model, blocked)) there.set(blocked.node, blocked.message);
  }
  return there;
}

/** What an operator can do about it, for the end of a sentence. */
export function whatHelps({ node }: Pick<BlockedProfile, "node">, model: string): string {
  const retry = `else with: heddle models retry ${model}`;
  return node === undefined
    ? "it is tried again when its profile, the engine's version on the nodes or its weights " +
      `change, ${retry}`
    : `it is tried on ${node} again when that machine restarts, or its driver, its engines, its ` +
      `problems, its weights or (where a disk was full) its free disk change, ${retry}`;
}

function circumstance(
  world: World,
  { model, profile, blocked }: {
    readonly model: Model;
    readonly profile: Profile;
    readonly blocked: Pick<BlockedProfile, "node" | "reason">;
  },
): string {
  const { node: name, reason } = blocked;
  const facts = name === undefined
    ? fleetFacts(world, model, profile)
    : nodeFacts(world.nodes.get(name), { model, profile, disk: reason === "disk_full" });
  return hash32(JSON.stringify([fingerprint(model, profile), facts])).toString(16).padStart(8, "0");
}

function fleetFacts(world: World, model: Model, profile: Profile): readonly unknown[] {
  const versions = new Set<string>();
  const weights = new Set<string>();
  for (const { name, inventory } of world.nodes.values()) {
    for (const { version, path } of enginesOf(inventory, profile)) {
      versions.add(`${version} ${path}`);
    }
    const bytes = weightsBytes(inventory, model);
    if (bytes !== undefined) weights.add(`${name} ${bytes}`);
  }
  return [[...versions].sort(), [...weights].sort()];
}

/** A node that is away has not been mended: it is judged when it is back. */
function nodeFacts(
  node: Node | undefined,
  { model, profile, disk }: {
    readonly model: Model;
    readonly profile: Profile;
    readonly disk: boolean;
  },
): readonly unknown[] {
  if (node === undefined) return [];
  const { bootId, inventory } = node;
  const { driverVersion, gpus, hcas, problems } = inventory;
  const found = [...problems, ...[...gpus, ...hcas].flatMap((part) => part.problems)]
    .map(({ reason }) => reason).filter((reason) => !PASSING_PROBLEMS.has(reason));
  const engines = enginesOf(inventory, profile).map(({ version, path, problems }) =>
    [version, path, ...problems.map(({ reason }) => reason)].join(" ")
  );
  return [
    bootId,
    driverVersion,
    [...new Set(found)].sort(),
    engines.sort(),
    weightsBytes(inventory, model) ?? "none",
    disk ? freeDisk(inventory) : "",
  ];
}

function enginesOf(inventory: Plain<Inventory>, profile: Profile) {
  return inventory.engines.filter(({ name }) => name === profile.engine);
}

/** By powers of two: what is written day by day is no remedy, and room for another model is. */
function freeDisk({ modelDirs }: Plain<Inventory>): readonly string[] {
  return modelDirs.map(({ path, freeBytes }) =>
    `${path} ${Math.floor(Math.log2(Number(freeBytes ?? 0) / GIB + 1))}`
  ).sort();
}
