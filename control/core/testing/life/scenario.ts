/** A random cluster and a random catalog, from one seed. */
import { type Catalog, catalogSchema } from "../../catalog.ts";
import type { NodeShape } from "../builders.ts";
import { FakeNode } from "../fake_node.ts";
import { type Random, randomOf } from "../random.ts";
import { Simulation } from "../simulation.ts";
import { FakeDisk, GIB } from "../weights/fake_disk.ts";
import type { Curses } from "./curses.ts";

const CLASSES = ["h100-80g", "a100-80g", "l40s-48g"] as const;
/** What nodes are labelled with, and profiles select by. */
export const LABELS: Readonly<Record<string, readonly string[]>> = {
  zone: ["a", "b"],
  rack: ["r1", "r2", "r3"],
};
/** Different weights that models may have. */
const SOURCES = 12;
const FABRICS = ["ib-a", "ib-b", "ib-c", undefined] as const;

export interface Scenario {
  readonly sim: Simulation;
  readonly curses: Curses;
  /** Only faults that give nobody a reason to stop anything. */
  readonly gentle: boolean;
  /** Nodes fetch weights, on disks that may be small. */
  readonly fetched: boolean;
}

/** Sizes are log-uniform, so that small clusters, where every case is a corner, come often. */
export function scenario(seed: number, nodesMax = 7): Scenario {
  const random = randomOf(seed ^ 0x5eed);
  const gentle = random.chance(0.35);
  const fetched = random.chance(0.4);
  const curses: Curses = { crash: new Set(), slow: new Set(), flaws: new Set() };
  const count = Math.floor(Math.exp(random.next() * Math.log(nodesMax + 1)));
  const classes = CLASSES.slice(0, random.int(1, CLASSES.length));
  const nodes = Array.from({ length: count }, (_, index) =>
    new FakeNode({
      name: `n${index + 1}`,
      shape: randomShape(random, classes),
      loadMs: random.int(500, 20_000),
      stopMs: random.int(100, 5_000),
      curses,
      disk: randomDisk(random, fetched),
    }));
  const models = random.int(1, Math.min(10, 3 + Math.floor(count / 8)));
  const sim = new Simulation({
    seed,
    nodes,
    catalog: randomCatalog(random, models, { classes, gentle, fetched }),
    routers: random.int(1, 3),
  });
  for (const router of sim.routers) router.rate = random.pick([0.02, 0.1, 0.3]);
  return { sim, curses, gentle, fetched };
}

function randomShape(random: Random, classes: readonly string[]): NodeShape {
  const fabric = random.pick(FABRICS);
  const other = random.pick(FABRICS);
  const two = fabric !== undefined && other !== undefined && other !== fabric && random.chance(0.4);
  const gpuClass = random.pick(classes);
  const otherClass = random.pick(classes);
  return {
    gpus: random.pick([2, 4, 8]),
    gpuClass,
    ...(otherClass !== gpuClass && random.chance(0.3) ? { otherClass } : {}),
    cliqueSize: random.pick([0, 2, 4, 8]),
    ...(fabric === undefined ? {} : { fabric, hcas: random.pick([4, 4, 8]) }),
    ...(two ? { otherFabric: other, otherHcas: random.pick([4, 4, 8]) } : {}),
    portBlocks: random.pick([2, 4, 40]),
    labels: randomLabels(random, 0.6),
  };
}

/** With what was fetched for models of earlier catalogs, and what people put beside it. */
function randomDisk(random: Random, fetched: boolean): FakeDisk {
  const like = "somebodys-model-0123456789abcd@v1";
  const disk = new FakeDisk({
    totalBytes: (fetched ? random.pick([40, 70, 120, 1_000]) : 1_000) * GIB,
    fetchMs: random.int(500, 10_000),
    foreign: ["models", like],
  });
  for (let left = fetched ? random.int(0, 4) : 0; left > 0; left--) {
    const source = `hf://org/w${random.int(1, SOURCES)}`;
    disk.fetch({ source, include: [], exclude: [], version: "v1" }, 0);
  }
  return disk;
}

/** Each key with that probability. */
export function randomLabels(
  random: Random,
  probability: number,
): Readonly<Record<string, string>> {
  const entries = Object.entries(LABELS).filter(() => random.chance(probability));
  return Object.fromEntries(entries.map(([key, values]) => [key, random.pick(values)]));
}

export interface CatalogOptions {
  readonly classes: readonly string[];
  /** No number of replicas depends on demand. */
  readonly gentle: boolean;
  /** Nodes fetch what models need. */
  readonly fetched: boolean;
}

export function randomCatalog(random: Random, count: number, options: CatalogOptions): Catalog {
  const models = Array.from({ length: count }, (_, index) => {
    const nodes = random.pick([1, 1, 2, 3]);
    const tp = random.pick([1, 1, 2, 4]);
    // One that may sleep is stopped for want of demand, which is no gentle thing.
    const min = options.gentle ? random.int(1, 3) : random.pick([0, 1, 1, 2, 3]);
    return {
      name: `m${index + 1}`,
      source: options.fetched ? `hf://org/w${random.int(1, SOURCES)}` : "org/weights",
      scaling: {
        min,
        max: options.gentle ? min : random.int(Math.max(1, min), 4),
        target: random.int(2, 6),
      },
      profiles: options.classes.map((gpuClass) => ({
        name: gpuClass,
        gpu_class: gpuClass,
        tp,
        pp: nodes,
        nodes,
        launch_mode: random.pick(["mp", "ray"]),
        args: random.chance(0.5) ? ["--max-model-len", "4096"] : [],
        startup_timeout: "2m",
        priority: random.int(0, 1),
        node_selector: randomLabels(random, 0.12),
      })),
    };
  });
  return catalogSchema.parse({ models });
}
