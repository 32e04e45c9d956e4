/**
 * What one node must be and have for a shard of a profile. Each fit says no with a reason and
 * numbers, or says nothing. To add one: write a function of the same type and add it to FITS.
 */
import { parseSizeBytes } from "@heddle/common/duration";
import { MIB } from "@heddle/common/model/memory";
import { decodeInstallState } from "@heddle/proto/install_state";
import type { Model, Profile } from "../catalog.ts";
import type { SourceHint } from "../facts/source_hint.ts";
import type { NodeId } from "../ids.ts";
import { type Candidate, usable } from "./candidate.ts";
import { gpuNeed } from "./gpu_need.ts";
import { blockCount, freeBlock } from "./port_blocks.ts";
import { type Rejection, short } from "./rejection.ts";
import { isPath, weightsBytes, weightsNearness } from "./weights.ts";

export interface PlaceRequest {
  readonly model: Model;
  readonly profile: Profile;
  /** What is known of the model's source, for nodes that do not have it; absent: nothing. */
  readonly hint?: Pick<SourceHint, "facts" | "totalBytes" | "weightBytes">;
  /** Nodes on which it failed for good, with what happened; nothing was mended there since. */
  readonly failedOn?: ReadonlyMap<NodeId, string>;
}

export type Fit = (request: PlaceRequest, candidate: Candidate) => Rejection | undefined;

/** Cheapest first; the first no of a node is the one that is shown. */
const FITS: readonly Fit[] = [
  fitState,
  fitSelector,
  fitGpuClass,
  fitEngine,
  fitWeights,
  fitGpusFree,
  fitGpuMemory,
  fitHostMemory,
  fitPorts,
  fitFailures,
];

/** The first reason why the node cannot take a shard of the profile; undefined when it can. */
export function firstRejection(
  request: PlaceRequest,
  candidate: Candidate,
): Rejection | undefined {
  for (const fit of FITS) {
    const rejection = fit(request, candidate);
    if (rejection !== undefined) return rejection;
  }
  return undefined;
}

function fitState(_request: PlaceRequest, candidate: Candidate) {
  const { name, state, registered, connected } = candidate;
  if (!registered && state !== "lost") {
    return reject(name, "not_registered", "control has not heard from it since it started");
  }
  switch (state) {
    case "ready":
      return connected ? undefined : reject(name, "unreachable", "its stream is closed");
    case "cordoned":
      return reject(name, "cordoned", "an operator placed a cordon on it");
    case "draining":
    case "drained":
      return reject(name, "draining", "an operator drains it");
    case "unreachable":
      return reject(name, "unreachable", "nothing was heard from it lately");
    case "lost":
      return reject(name, "lost", "nothing was heard from it for long");
    case "unknown":
      return reject(name, "unreachable", "its state is not known");
  }
}

// After all others: who reads of a failure is to know that nothing else is in the way.
function fitFailures({ failedOn }: PlaceRequest, { name }: Candidate) {
  const message = failedOn?.get(name);
  return message === undefined ? undefined : reject(name, "failed_here", message);
}

function fitSelector({ profile }: PlaceRequest, { name, labels }: Candidate) {
  for (const key of Object.keys(profile.node_selector).sort()) {
    const want = profile.node_selector[key];
    const have = labels[key];
    if (have !== want) {
      return reject(
        name,
        "node_selector",
        `want ${key}=${want} have ${have === undefined ? "no such label" : `${key}=${have}`}`,
      );
    }
  }
  return undefined;
}

function fitGpuClass({ profile }: PlaceRequest, { name, inventory }: Candidate) {
  if (profile.gpu_class === undefined) return undefined;
  if (inventory.gpus.some((gpu) => gpu.gpuClass === profile.gpu_class)) return undefined;
  const classes = [...new Set(inventory.gpus.map((gpu) => gpu.gpuClass).filter((c) => c !== ""))];
  const have = classes.length === 0 ? "none" : classes.sort().join(", ");
  return reject(name, "gpu_class", `want ${profile.gpu_class} have ${have}`);
}

function fitEngine({ profile }: PlaceRequest, { name, inventory }: Candidate) {
  const { engine, engine_version: version } = profile;
  if (!inventory.enginesProbed && inventory.engines.length === 0) {
    return reject(
      name,
      "engine_missing",
      `want ${engine}; the node has not looked for engines yet`,
    );
  }
  const found = inventory.engines.filter((each) => each.name === engine);
  const sound = found.filter((each) => each.problems.length === 0);
  if (sound.length === 0) {
    const problem = found[0]?.problems[0];
    const why = problem === undefined
      ? installWords(inventory, engine)
      : `; ${problem.detail} (${problem.reason})`;
    const have = [...new Set(inventory.engines.map((each) => each.name))].sort().join(", ");
    return reject(name, "engine_missing", `want ${engine} have ${have || "none"}${why}`);
  }
  if (version === "" || sound.some((each) => each.version === version)) return undefined;
  const versions = sound.map((each) => each.version).sort().join(", ");
  const why = installWords(inventory, engine);
  return reject(name, "engine_version", `want ${engine} ${version} have ${versions}${why}`);
}

/** What the node does about an engine that control wants there; empty when it does nothing. */
function installWords(inventory: Candidate["inventory"], engine: string): string {
  const words = (inventory.installs?.installs ?? [])
    .filter(({ name, state }) => name === engine && decodeInstallState(state) !== "installed")
    .map(({ version, state, progress, reason, message }) => {
      const more = [progress, reason, message].filter((text) => text !== "").join(": ");
      return `${version} is ${decodeInstallState(state)}${more === "" ? "" : `: ${more}`}`;
    });
  return words.length === 0 ? "" : `; ${words.join("; ")}`;
}

function fitWeights({ model, profile, hint }: PlaceRequest, { name, inventory }: Candidate) {
  // The simulated engine has no weights.
  if (profile.engine === "sim" || weightsBytes(inventory, model) !== undefined) {
    return undefined;
  }
  if (isPath(model.source)) {
    return reject(name, "weights_missing", `want ${model.source}; the node does not report it`);
  }
  if (inventory.modelDirs.length === 0) {
    return reject(name, "weights_missing", `no model directory to fetch ${model.source} into`);
  }
  if (inventory.modelDirs.every((dir) => dir.freeBytes === 0n)) {
    return reject(name, "disk_short", `no model directory has room for ${model.source}`);
  }
  // What is fetched goes below the first one; what is on its way has its room already.
  const free = inventory.modelDirs[0]?.freeBytes;
  const need = hint?.totalBytes;
  if (
    need !== undefined && free !== undefined && Number(free) < need &&
    weightsNearness(inventory, model) === 0
  ) {
    return short(
      name,
      "disk_short",
      { want: Math.ceil(need / MIB), have: Math.floor(Number(free) / MIB) },
      `MiB for ${model.source} in ${inventory.modelDirs[0]?.path}`,
    );
  }
  return undefined;
}

function fitGpusFree({ profile }: PlaceRequest, candidate: Candidate) {
  const { gpu_class: gpuClass, gpus_per_node: want } = profile;
  if (gpuClass === undefined) return undefined;
  const { name, inventory, freeGpus } = candidate;
  const have = countOfClass(candidate, gpuClass);
  if (have >= want) return undefined;
  const all = inventory.gpus.filter((gpu) => gpu.gpuClass === gpuClass);
  const bad = all.filter((gpu) => gpu.problems.length > 0);
  const free = new Set(freeGpus.map(({ uuid }) => uuid));
  const held = all.filter((gpu) => usable(gpu) && !free.has(gpu.uuid)).length;
  const reasons = [...new Set(bad.flatMap((gpu) => gpu.problems.map((each) => each.reason)))];
  const words = [
    // Whatever ends or is mended there, it stays too small.
    ...(all.length < want ? [`${all.length} in all`] : []),
    ...(held > 0 ? [`${held} held by replicas`] : []),
    ...(bad.length > 0 ? [`${bad.length} unusable (${reasons.sort().join(", ")})`] : []),
  ];
  return short(name, "gpus_free", { want, have }, words.join(", "));
}

function fitGpuMemory(request: PlaceRequest, candidate: Candidate) {
  const { gpu_class: gpuClass, gpus_per_node: want } = request.profile;
  if (gpuClass === undefined) return undefined;
  const need = gpuNeed(request, candidate);
  if (need === undefined) return undefined;
  const free = freeOfClass(candidate, gpuClass);
  if (free.filter((gpu) => (gpu.memoryTotalMib ?? Infinity) >= need.mib).length >= want) {
    return undefined;
  }
  const haveMib = Math.max(...free.map((gpu) => gpu.memoryTotalMib ?? 0));
  return short(
    candidate.name,
    "memory_short",
    { want: need.mib, have: haveMib },
    need.words(haveMib),
  );
}

function fitHostMemory({ profile }: PlaceRequest, candidate: Candidate) {
  const { name, inventory, promisedMemoryBytes } = candidate;
  if (profile.memory === undefined || inventory.memoryBytes === undefined) return undefined;
  const want = parseSizeBytes(profile.memory) ?? 0;
  const total = Number(inventory.memoryBytes);
  const have = total - promisedMemoryBytes;
  if (have >= want) return undefined;
  const inAll = total < want ? `, ${Math.floor(total / MIB)} in all` : "";
  return short(
    name,
    "memory_short",
    { want: Math.ceil(want / MIB), have: Math.max(0, Math.floor(have / MIB)) },
    `MiB of host memory that is not promised to replicas${inAll}`,
  );
}

function fitPorts(_request: PlaceRequest, candidate: Candidate) {
  if (freeBlock(candidate) !== undefined) return undefined;
  return short(
    candidate.name,
    "ports_free",
    { want: 1, have: 0 },
    `all ${blockCount(candidate)} blocks of ports are held`,
  );
}

/** Free GPUs of a class whose memory is large enough for the weights, as far as that is known. */
export function roomyGpus(request: PlaceRequest, candidate: Candidate) {
  if (request.profile.gpu_class === undefined) return [];
  const need = gpuNeed(request, candidate);
  const free = freeOfClass(candidate, request.profile.gpu_class);
  return need === undefined ? free : free
    .filter((gpu) => (gpu.memoryTotalMib ?? Infinity) >= need.mib);
}

function countOfClass({ freeGpus }: Candidate, gpuClass: string): number {
  return freeGpus.reduce((count, gpu) => gpu.gpuClass === gpuClass ? count + 1 : count, 0);
}

function freeOfClass(candidate: Candidate, gpuClass: string) {
  return candidate.freeGpus.filter((gpu) => gpu.gpuClass === gpuClass);
}

function reject(node: string, reason: Rejection["reason"], detail: string): Rejection {
  return { node, reason, detail };
}
