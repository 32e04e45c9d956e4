/** Things for tests, whole and healthy unless told otherwise. */
import type { Plain } from "@heddle/proto/plain";
import type { Gpu, Hca, Inventory } from "@heddle/proto/gen/types";
import type { Catalog, Model, Profile } from "../catalog.ts";
import { catalogSchema, EMPTY_CATALOG } from "../catalog.ts";
import type { Registered } from "../event.ts";
import type { EpochMs, NodeId } from "../ids.ts";
import { observe } from "../observing/observe.ts";
import { NO_DECISIONS, type Remembered, startWorld, type World } from "../world.ts";

/** When tests begin. Any number does; this one shows that nothing starts from 0. */
export const T0: EpochMs = 1_000_000;

export interface NodeShape {
  readonly gpus?: number;
  readonly gpuClass?: string;
  /** Class of the upper half of its GPUs; absent: all are of one. */
  readonly otherClass?: string;
  readonly memoryMib?: number;
  /** GPUs per NVLink clique; 0 for none. */
  readonly cliqueSize?: number;
  /** Fabric that its HCAs are on; absent for a node without any. */
  readonly fabric?: string;
  readonly hcas?: number;
  /** A second fabric, with adapters of its own that come after those of the first. */
  readonly otherFabric?: string;
  readonly otherHcas?: number;
  readonly engines?: readonly (readonly [name: string, version: string])[];
  readonly memoryBytes?: number;
  readonly labels?: Readonly<Record<string, string>>;
  readonly modelFiles?: readonly (readonly [path: string, bytes: number])[];
  /** Blocks of ports that it has. */
  readonly portBlocks?: number;
}

/** An H100-like node: 8 GPUs in one clique, every engine, no fabric. */
export function inventory(name: NodeId, shape: NodeShape = {}): Plain<Inventory> {
  const fabrics = fabricsOf(shape);
  const engines = shape.engines ??
    [["vllm", "0.28.1"], ["sglang", "0.5.17"], ["llamacpp", "b11069"], ["sim", "0.1.0"]];
  return {
    hostname: name,
    os: "linux",
    arch: "x86_64",
    cpuCount: 64,
    memoryBytes: BigInt(shape.memoryBytes ?? 2 ** 40),
    driverVersion: "580.95.05",
    gpus: Array.from({ length: shape.gpus ?? 8 }, (_, index) => gpu(name, index, shape)),
    hcas: fabrics.flatMap(({ name, from, count }) =>
      Array.from({ length: count }, (_, index) => hca(from + index, name))
    ),
    fabrics: fabrics.map(({ name, from, count }) => ({
      name,
      degraded: false,
      hcas: Array.from({ length: count }, (_, index) => `mlx5_${from + index}`),
    })),
    engines: engines.map(([engine, version]) => ({
      name: engine,
      version,
      path: `/opt/heddle/engines/${engine}-${version}`,
      problems: [],
    })),
    enginesProbed: true,
    modelDirs: [{ path: "/var/lib/heddle/models", freeBytes: 2n ** 40n, shared: false }],
    modelFiles: (shape.modelFiles ?? []).map(([path, bytes]) => ({
      path,
      sizeBytes: BigInt(bytes),
    })),
    modelFilesPresent: true,
    enginePortFirst: 20_000,
    enginePortLast: 20_000 + 256 * (shape.portBlocks ?? 46) - 1,
    enginePortBlock: 256,
    problems: [],
    labels: { ...shape.labels },
    managementInterface: "ens3",
  };
}

export interface ShapeFabric {
  readonly name: string;
  /** Number of its first adapter. */
  readonly from: number;
  readonly count: number;
}

/** Fabrics of such a node, with the numbers of their adapters. */
export function fabricsOf(shape: NodeShape): readonly ShapeFabric[] {
  const { fabric, hcas = 8, otherFabric, otherHcas = hcas } = shape;
  const first = fabric === undefined ? [] : [{ name: fabric, from: 0, count: hcas }];
  if (otherFabric === undefined) return first;
  return [...first, { name: otherFabric, from: first.length * hcas, count: otherHcas }];
}

/** Class of one GPU of such a node. */
export function classOf(shape: NodeShape, index: number): string {
  const { gpus = 8, gpuClass = "h100-80g", otherClass } = shape;
  return otherClass !== undefined && index >= gpus / 2 ? otherClass : gpuClass;
}

export function gpu(node: NodeId, index: number, shape: NodeShape = {}): Plain<Gpu> {
  const cliqueSize = shape.cliqueSize ?? 8;
  return {
    index,
    uuid: `GPU-${node}-${index}`,
    name: "NVIDIA H100 80GB HBM3",
    gpuClass: classOf(shape, index),
    pciBusId: `0000:${index.toString(16).padStart(2, "0")}:00`,
    memoryTotalMib: shape.memoryMib ?? 81_559,
    memoryUsedMib: 0,
    numaNode: index < 4 ? 0 : 1,
    ...(cliqueSize > 0 ? { nvlinkClique: Math.floor(index / cliqueSize) } : {}),
    problems: [],
  };
}

export function hca(index: number, fabric: string): Plain<Hca> {
  return {
    name: `mlx5_${index}`,
    port: 1,
    linkLayer: 1,
    active: true,
    rateGbps: 400,
    numaNode: index < 4 ? 0 : 1,
    fabric,
    problems: [],
  };
}

/** A registration of a node that runs nothing. */
export function registered(
  node: NodeId,
  shape: NodeShape = {},
  rest: Partial<Registered> = {},
): Registered {
  return {
    kind: "registered",
    node,
    agentVersion: "0.1.0",
    bootId: "boot-1",
    agentInstance: "agent-1",
    address: `10.0.0.${node.replace(/\D/g, "") || "1"}`,
    inventory: inventory(node, shape),
    shards: [],
    highestRevision: { term: 0, sequence: 0 },
    ...rest,
  };
}

/** A catalog from its document, as an operator would write it. */
export function catalog(...models: readonly object[]): Catalog {
  return catalogSchema.parse({ models });
}

/** A model of one profile with one H100; `profile` and `model` change what they name. */
export function modelOf(
  model: { readonly name: string } & Readonly<Record<string, unknown>>,
  profile: Readonly<Record<string, unknown>> = {},
): Model {
  const parsed = catalog({
    source: "org/weights",
    profiles: [{ name: "h100", gpu_class: "h100-80g", ...profile }],
    ...model,
  });
  const [only] = parsed.models;
  if (only === undefined) throw new Error("a catalog of one model has one");
  return only;
}

export function firstProfile(model: Model): Profile {
  const [profile] = model.profiles;
  if (profile === undefined) throw new Error("every model has a profile");
  return profile;
}

/** A world that knows no node and has this catalog. */
export function world(models: readonly Model[] = [], rest: Partial<Remembered> = {}): World {
  return startWorld({
    cluster: "test",
    storedTerm: 0,
    catalog: {
      catalog: models.length === 0 ? EMPTY_CATALOG : { models: [...models] },
      text: "",
      revision: 1,
    },
    knownNodes: new Set(),
    decisions: NO_DECISIONS,
    ...rest,
  }, T0);
}

/** A world in which these nodes have registered. */
export function worldWith(
  models: readonly Model[],
  nodes: Readonly<Record<NodeId, NodeShape>>,
  now: EpochMs = T0,
): World {
  return Object.entries(nodes).reduce(
    (so, [name, shape]) => observe(so, registered(name, shape), now),
    world(models),
  );
}
