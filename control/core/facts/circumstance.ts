/**
 * What a permanent failure depends on: while it is the same, trying again cannot help. A failure of
 * the profile depends on the profile, the versions of its engine in the fleet, and where its weights
 * lie, and keeps the profile from starting anywhere. A failure of a node depends on what is mended
 * there, and keeps the profile from that node alone. What is remembered from before a restart of
 * control holds while nodes that have not registered yet may be as they were.
 */
import type { Plain } from "@heddle/proto/plain";
import type { Inventory } from "@heddle/proto/gen/types";
import type { Model, Profile } from "../catalog.ts";
import { fingerprint } from "../catalog/fingerprint.ts";
import type { NodeId } from "../ids.ts";
import { weightsBytes } from "../placing/weights.ts";
import type { BlockedProfile, Failures, Told } from "../deciding/failures.ts";
import type { Node, World } from "../world.ts";
import { unheard } from "./settled.ts";

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
  return {
    ...blocked,
    fingerprint: fingerprint(model, profile),
    told: told(world, { model, profile, blocked }),
  };
}

/** Whether nothing has changed that could help since the profile was blocked. */
export function stillBlocked(
  world: World,
  model: Model,
  blocked: BlockedProfile,
): boolean {
  const profile = model.profiles.find(({ name }) => name === blocked.profile);
  if (profile === undefined || blocked.fingerprint !== fingerprint(model, profile)) return false;
  const now = told(world, { model, profile, blocked });
  const before = new Set(blocked.told.map(textOf));
  const is = new Set(now.map(textOf));
  return now.every((each) => before.has(textOf(each))) &&
    blocked.told.every((each) => is.has(textOf(each)) || unheardOf(world, each));
}

/** What only a node can say that has not registered with this control: it may be as it was. */
function unheardOf(world: World, { node }: Told): boolean {
  return node === undefined
    ? unheard(world).length > 0
    : world.knownNodes.has(node) && !world.nodes.has(node);
}

function textOf({ node, what }: Told): string {
  return `${node ?? ""} ${what}`;
}

/** Nodes on which the profile must not be tried again yet, each with what happened there. */
export function failedOn(
  world: World,
  record: Failures | undefined,
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

function told(
  world: World,
  { model, profile, blocked }: {
    readonly model: Model;
    readonly profile: Profile;
    readonly blocked: Pick<BlockedProfile, "node" | "reason">;
  },
): readonly Told[] {
  const { node, reason } = blocked;
  if (node === undefined) return toldByFleet(world, model, profile);
  const disk = reason === "disk_full";
  return toldByNode(world.nodes.get(node), { model, profile, disk })
    .map((what) => ({ node, what }));
}

function toldByFleet(world: World, model: Model, profile: Profile): readonly Told[] {
  const versions = new Set<string>();
  const weights: Told[] = [];
  for (const { name, inventory } of world.nodes.values()) {
    for (const { version, path } of enginesOf(inventory, profile)) {
      versions.add(`${profile.engine} ${version} ${path}`);
    }
    const bytes = weightsBytes(inventory, model);
    if (bytes !== undefined) weights.push({ node: name, what: `weights ${bytes}` });
  }
  return [...[...versions].sort().map((what) => ({ what })), ...weights];
}

function toldByNode(
  node: Node | undefined,
  { model, profile, disk }: {
    readonly model: Model;
    readonly profile: Profile;
    readonly disk: boolean;
  },
): readonly string[] {
  if (node === undefined) return [];
  const { bootId, inventory } = node;
  const { driverVersion, gpus, hcas, problems } = inventory;
  const found = [...problems, ...[...gpus, ...hcas].flatMap((part) => part.problems)]
    .map(({ reason }) => reason).filter((reason) => !PASSING_PROBLEMS.has(reason));
  const engines = enginesOf(inventory, profile).map(({ version, path, problems }) =>
    [version, path, ...problems.map(({ reason }) => reason)].join(" ")
  );
  return [
    `boot ${bootId}`,
    `driver ${driverVersion}`,
    ...[...new Set(found)].sort().map((reason) => `problem ${reason}`),
    ...engines.map((engine) => `${profile.engine} ${engine}`),
    `weights ${weightsBytes(inventory, model) ?? "none"}`,
    ...(disk ? freeDisk(inventory) : []),
  ];
}

function enginesOf(inventory: Plain<Inventory>, profile: Profile) {
  return inventory.engines.filter(({ name }) => name === profile.engine);
}

/** By powers of two: what is written day by day is no remedy, and room for another model is. */
function freeDisk({ modelDirs }: Plain<Inventory>): readonly string[] {
  return modelDirs.map(({ path, freeBytes }) =>
    `free ${path} ${Math.floor(Math.log2(Number(freeBytes ?? 0) / GIB + 1))}`
  );
}
