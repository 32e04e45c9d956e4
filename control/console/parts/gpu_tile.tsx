/** One GPU as a tile: what it is, how full, who has it, and whether it is well. */
import type { GpuItem } from "../../edge/console/wire.ts";
import { gib } from "../words.ts";

export function GpuTile(
  { gpu, replica }: {
    readonly gpu: GpuItem;
    /** Which replica has it; undefined for none. */
    readonly replica: string | undefined;
  },
) {
  const { index, gpuClass, name, usedMib, totalMib, percent, celsius, problems } = gpu;
  const full = usedMib === undefined || !totalMib ? 0 : Math.min(100, (usedMib / totalMib) * 100);
  const says = [
    `GPU ${index}`,
    gpuClass || name || "unknown class",
    `${gib(usedMib)} of ${gib(totalMib)} GiB`,
    ...(percent === undefined ? [] : [`${percent} % busy`]),
    ...(celsius === undefined ? [] : [`${celsius} °C`]),
    replica === undefined ? "free" : `replica ${replica}`,
    ...problems.map(({ detail, reason }) => detail || reason),
  ].join(", ");
  const tone = problems.length > 0 ? "bad" : replica === undefined ? "free" : "held";
  return (
    <li class={`gpu ${tone}`} title={says} aria-label={says}>
      <span class="gpu-index">{index}</span>
      <span class="gpu-class">{shortClass(gpuClass)}</span>
      <span class="gpu-memory">{`${gib(usedMib)}/${gib(totalMib)}`}</span>
      <meter class="gpu-bar" min={0} max={100} value={full} aria-hidden="true" />
    </li>
  );
}

function shortClass(gpuClass: string): string {
  return gpuClass === "" ? "?" : gpuClass.replace(/-\d+g$/, "");
}
