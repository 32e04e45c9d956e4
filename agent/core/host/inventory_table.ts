/** A node's inventory as tables for people. */

import type { Gpu, Hca, Inventory, LinkLayer, Problem } from "@heddle/proto/gen/types";

/** Names of the link layers as the wire numbers them; other numbers are of a newer peer. */
const LINK_LAYERS: Readonly<Record<LinkLayer, string>> = {
  0: "unknown",
  1: "InfiniBand",
  2: "Ethernet",
};

/** The whole of it, ending with a newline. Unknown is `?`. */
export function inventoryTable(inventory: Inventory): string {
  return [
    nodeLines(inventory),
    section("GPUs", gpuRows(inventory.gpus)),
    section("HCAs", hcaRows(inventory.hcas)),
    section("Fabrics", [
      ["NAME", "RATE", "STATE", "HCAS"],
      ...inventory.fabrics.map((fabric) => [
        fabric.name,
        rate(fabric.rateGbps),
        fabric.degraded ? "degraded" : "ready",
        fabric.hcas.join(" "),
      ]),
    ]),
    section("Model directories", [
      ["PATH", "FREE", "SHARED"],
      ...inventory.modelDirs.map((dir) => [
        dir.path,
        dir.freeBytes === undefined ? "?" : gib(dir.freeBytes),
        dir.shared ? "yes" : "no",
      ]),
    ]),
    section("Models", [
      ["PATH", "SIZE"],
      ...inventory.modelFiles.map((file) => [file.path, gib(file.sizeBytes)]),
    ]),
    section("Engines", [
      ["NAME", "VERSION", "PATH"],
      ...inventory.engines.map((engine) => [engine.name, engine.version || "?", engine.path]),
    ]),
    problemLines(inventory),
  ].filter((text) => text !== "").join("\n");
}

function nodeLines(inventory: Inventory): string {
  const memory = inventory.memoryBytes === undefined ? "?" : gib(inventory.memoryBytes);
  return [
    `Node       ${inventory.hostname || "?"}`,
    `System     ${inventory.os} ${inventory.arch}, ${inventory.cpuCount} CPUs, ${memory} memory`,
    ...loadLine(inventory),
    `Driver     ${inventory.driverVersion || "none"}`,
    `Interface  ${inventory.managementInterface || "none holds the management address"}`,
    "",
  ].join("\n");
}

function loadLine({ load }: Inventory): string[] {
  const parts = [
    ...(load?.load1m === undefined ? [] : [load.load1m.toFixed(1)]),
    ...(load?.memoryAvailableBytes === undefined
      ? []
      : [`${gib(load.memoryAvailableBytes)} memory free`]),
  ];
  return parts.length === 0 ? [] : [`Load       ${parts.join(", ")}`];
}

function gpuRows(gpus: readonly Gpu[]): string[][] {
  return [
    ["GPU", "CLASS", "NAME", "MIB", "CAP", "NUMA", "NVLINK", "PCI", "LANES", "NEAR", "STATE"],
    ...gpus.map((gpu) => [
      String(gpu.index),
      gpu.gpuClass || "?",
      gpu.name,
      text(gpu.memoryTotalMib),
      text(gpu.computeCapability),
      text(gpu.numaNode),
      nvlink(gpu),
      gpu.pciBusId || "?",
      text(gpu.place?.pcieWidth),
      near(gpu),
      state(gpu.problems),
    ]),
  ];
}

function hcaRows(hcas: readonly Hca[]): string[][] {
  return [
    ["HCA", "PORT", "LAYER", "ACTIVE", "RATE", "NUMA", "PCI", "GID", "FABRIC", "STATE"],
    ...hcas.map((hca) => [
      hca.name,
      String(hca.port),
      LINK_LAYERS[hca.linkLayer],
      hca.active ? "yes" : "no",
      rate(hca.rateGbps),
      text(hca.numaNode),
      hca.pciBusId ?? "?",
      text(hca.roceGidIndex, "-"),
      hca.fabric || "-",
      state(hca.problems),
    ]),
  ];
}

/** The clique, and the domain beyond the node in short: `0 of 7ab3…/2`. */
function nvlink(gpu: Gpu): string {
  const clique = text(gpu.nvlinkClique, "-");
  const [cluster = "", number = ""] = gpu.nvlinkDomain?.split("/") ?? [];
  return gpu.nvlinkDomain === undefined ? clique : `${clique} of ${cluster.slice(0, 4)}…/${number}`;
}

/** The adapters that are nearest, and how near those are: `mlx5_0,mlx5_1 PIX`. */
function near(gpu: Gpu): string {
  const hcas = gpu.place?.hcas ?? [];
  const [nearest] = hcas;
  if (nearest === undefined) return "?";
  const names = hcas.filter(({ distance }) => distance === nearest.distance)
    .map(({ name }) => name);
  return `${names.join(",")} ${nearest.distance}`;
}

function problemLines(inventory: Inventory): string {
  const lines = [
    ...inventory.problems.flatMap((each) => problemText("node", each)),
    ...inventory.gpus.flatMap((gpu) =>
      gpu.problems.flatMap((each) => problemText(`GPU ${gpu.index}`, each))
    ),
    ...inventory.hcas.flatMap((hca) =>
      hca.problems.flatMap((each) => problemText(`${hca.name}:${hca.port}`, each))
    ),
  ];
  return lines.length === 0 ? "" : `Problems\n${lines.join("\n")}\n`;
}

function problemText(where: string, problem: Problem): string[] {
  return [`  ${where} ${problem.reason}: ${problem.detail}`, `    → ${problem.remedy}`];
}

function state(problems: readonly Problem[]): string {
  return problems.map((each) => each.reason).join(",") || "ok";
}

/** A titled table; nothing when there is only its heading. */
function section(title: string, rows: readonly (readonly string[])[]): string {
  if (rows.length < 2) return "";
  const widths = (rows[0] ?? []).map((_, at) =>
    Math.max(...rows.map((row) => row[at]?.length ?? 0))
  );
  const lines = rows.map((row) =>
    `  ${row.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join("  ")}`.trimEnd()
  );
  return `${title}\n${lines.join("\n")}\n`;
}

function text(value: string | number | undefined, absent = "?"): string {
  return value === undefined ? absent : String(value);
}

function rate(gbps: number | undefined): string {
  return gbps === undefined ? "?" : `${gbps} Gb/s`;
}

function gib(bytes: bigint): string {
  return `${(Number(bytes) / 1024 ** 3).toFixed(1)} GiB`;
}
