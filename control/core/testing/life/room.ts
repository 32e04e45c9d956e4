/** Whether a replica would find room in a simulated fleet, by trying everything. */
import { classOf, fabricsOf } from "../builders.ts";
import type { FakeNode } from "../fake_node.ts";
import { lacking } from "../ledger.ts";
import type { Simulation } from "../simulation.ts";
import { type FakeDisk, sizeOf } from "../weights/fake_disk.ts";

export interface RoomOptions {
  /** Only what control may use now: nodes that it hears, and disks as they are. */
  readonly atOnce: boolean;
}

/** Brute force: some set of nodes of one fabric and class has the labels, GPUs, ports and disk. */
export function roomFor(sim: Simulation, name: string, { atOnce }: RoomOptions): boolean {
  const model = sim.world.catalog.catalog.models.find((each) => each.name === name);
  return (model?.profiles ?? []).some((profile) => {
    const nodes = [...sim.nodes.values()].filter((node) =>
      !(atOnce && sim.ledger.whyClosed(node.name, sim.now) !== undefined) &&
      sim.ledger.permanence.why({ model: name, profile: profile.name, node: node.name }) ===
        undefined &&
      lacking(profile.node_selector, sim.ledger.labelsOf(node.name)) === undefined &&
      freeGpus(node, profile.gpu_class) >= profile.gpus_per_node &&
      node.running().length < (node.shape.portBlocks ?? 0) &&
      hasDisk(sim, node, { source: model?.source ?? "", atOnce })
    );
    if (profile.nodes === 1) return nodes.length > 0;
    const islands = Map.groupBy(
      nodes.flatMap((node) => fabricsOf(node.shape)),
      ({ name, count }) => `${name} ${count}`,
    );
    return [...islands.values()].some((island) => island.length >= profile.nodes);
  });
}

/** The weights are there, or fit; or would, once what nobody asks for has made room. */
function hasDisk(
  sim: Simulation,
  { disk }: FakeNode,
  { source, atOnce }: RoomOptions & { readonly source: string },
): boolean {
  if (!source.startsWith("hf://")) return true;
  if (disk.whole(sim.now).some((folder) => disk.sourceOf(folder) === source)) return true;
  if (atOnce) return disk.freeBytes() >= sizeOf(source);
  const spare = unusedOn(sim, disk).reduce((sum, each) => sum + sizeOf(each), 0);
  return disk.freeBytes() + spare >= sizeOf(source);
}

/** Sources of whole weights on a disk that neither a model nor an engine asks for. */
export function unusedOn(sim: Simulation, disk: FakeDisk): readonly string[] {
  const running = [...sim.nodes.values()].flatMap((node) => node.running());
  const used = new Set(running.map(({ spec }) => spec.weights?.source ?? ""));
  return disk.whole(sim.now).map((folder) => disk.sourceOf(folder) ?? "").filter((source) =>
    !used.has(source) && sim.ledger.modelOfSource(source) === undefined
  );
}

function freeGpus(node: FakeNode, gpuClass: string | undefined): number {
  const unusable = new Set(node.badGpus);
  for (const { spec } of node.running()) for (const { index } of spec.gpus) unusable.add(index);
  return Array.from({ length: node.shape.gpus ?? 0 }, (_, index) => index)
    .filter((index) => !unusable.has(index) && classOf(node.shape, index) === gpuClass).length;
}
