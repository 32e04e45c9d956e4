/** An `nvidia-smi` for described hardware: a shell script with the real one's answers and errors. */

import type { FixtureGpu, FixtureGpus, FixtureHca, FixtureNode } from "./fixture_spec.ts";

/** Device ids of common boards, which are printed as `0x233010DE`. */
const DEVICE_IDS: Readonly<Record<string, string>> = {
  "NVIDIA H100 80GB HBM3": "2330",
  "NVIDIA H200": "2335",
  "NVIDIA B200": "2901",
  "NVIDIA A100-SXM4-40GB": "20B0",
  "NVIDIA A100-SXM4-80GB": "20B2",
  "NVIDIA L40S": "26B9",
};

/** Units that stand in headings, and after values unless `nounits` is asked. */
const UNITS: Readonly<Record<string, string>> = {
  "memory.total": "MiB",
  "memory.used": "MiB",
  "memory.free": "MiB",
  "utilization.gpu": "%",
  "power.draw": "W",
  "used_gpu_memory": "MiB",
};

/** The whole script. */
export function nvidiaSmiScript(spec: FixtureNode, gpus: readonly FixtureGpu[]): string {
  const cells = gpus.map((gpu) => gpuCells(spec, gpu));
  const fields = Object.keys(cells[0] ?? {});
  return `#!/bin/sh
# Stands in for nvidia-smi on a simulated node. The hardware it tells of is described, not there;
# nothing it prints was measured.
set -f
${valueFunction(fields, cells)}
${queryFunction(gpus.length)}
${dispatch(spec, gpus, fields)}`;
}

/** `value INDEX FIELD` sets `$cell` and `$unit`, or fails for a field that does not exist. */
function valueFunction(
  fields: readonly string[],
  cells: readonly Readonly<Record<string, string>>[],
): string {
  return `value() {
  unit=
  case "$2" in
${unitCases((field, unit) => `${field}) unit=' ${unit}' ;;`)}
  esac
  case "$1/$2" in
${fields.map((field) => cellCases(field, cells)).join("\n")}
  *) return 1 ;;
  esac
  # A cell without a value has no unit, and neither has one whose caller wants none.
  case "$cell" in [0-9]*) ;; *) unit= ;; esac
  if [ "$units" = no ]; then unit=; fi
}`;
}

/** `query_gpu "FIELD FIELD"` prints the table, or refuses it whole for one wrong name. */
function queryFunction(count: number): string {
  return `query_gpu() {
  line=
  for field in $1; do
    if ! value 0 "$field"; then
      printf 'Field "%s" is not a valid field to query.\\n\\n' "$field"
      exit 2
    fi
    heading=$field
    case "$field" in
${unitCases((field, unit) => `${field}) heading='${field} [${unit}]' ;;`)}
    esac
    line="\${line:+$line, }$heading"
  done
  if [ "$header" = yes ]; then printf '%s\\n' "$line"; fi
  index=0
  while [ "$index" -lt ${count} ]; do
    line=
    for field in $1; do
      value "$index" "$field"
      line="\${line:+$line, }$cell$unit"
    done
    printf '%s\\n' "$line"
    index=$((index + 1))
  done
}`;
}

/** Reads the arguments and answers. */
function dispatch(
  spec: FixtureNode,
  gpus: readonly FixtureGpu[],
  fields: readonly string[],
): string {
  return `query= apps= header=yes units=yes
for argument in "$@"; do
  case "$argument" in
  --query-gpu=*) query=$(printf '%s' "\${argument#*=}" | tr , ' ') ;;
  --query-compute-apps=*) apps=$(printf '%s' "\${argument#*=}" | sed 's/,/, /g') ;;
  --format=*)
    case ",\${argument#*=}," in *,noheader,*) header=no ;; esac
    case ",\${argument#*=}," in *,nounits,*) units=no ;; esac
    ;;
  esac
done
if [ -n "$query" ]; then query_gpu "$query"; exit 0; fi
if [ -n "$apps" ]; then
  # No process computes on hardware that is not there.
  if [ "$header" = yes ]; then printf '%s\\n' "$apps"; fi
  exit 0
fi
case "$*" in
--help-query-gpu) printf '%s' ${quoted(helpText(fields))} ;;
'topo -m') printf '%s' ${quoted(topologyText(spec, gpus))} ;;
'nvlink -s') printf '%s' ${quoted(nvlinkText(spec, gpus))} ;;
'-L' | '') printf '%s' ${quoted(listText(gpus))} ;;
*)
  printf 'ERROR: Option %s is not recognized. Please run nvidia-smi -h.\\n' "$1"
  exit 1
  ;;
esac
`;
}

/** One arm of a `case` for each field that has a unit. */
function unitCases(arm: (field: string, unit: string) => string): string {
  return Object.entries(UNITS).map(([field, unit]) => `  ${arm(field, unit)}`).join("\n");
}

/** One line for a field that all GPUs answer alike, else one for each. */
function cellCases(field: string, cells: readonly Readonly<Record<string, string>>[]): string {
  const values = cells.map((each) => each[field] ?? "[N/A]");
  if (new Set(values).size === 1) return `  */${field}) cell=${quoted(values[0] ?? "")} ;;`;
  return values.map((value, at) => `  ${at}/${field}) cell=${quoted(value)} ;;`).join("\n");
}

function gpuCells(spec: FixtureNode, gpu: FixtureGpu): Record<string, string> {
  const { group, index } = gpu;
  const used = 4;
  const [domain = "", ...rest] = gpu.pciFunction.split(":");
  const major = Number(group.computeCapability.split(".")[0]);
  const deviceId = group.pciDeviceId ?? DEVICE_IDS[group.name] ?? "FFFF";
  // Only Hopper and later, all linked by switches, have a fabric to report.
  const switched = major >= 9 && spec.nvlink === "all";
  return {
    "index": String(index),
    "uuid": gpu.uuid,
    "gpu_uuid": gpu.uuid,
    "name": group.name,
    "count": String(spec.gpus.reduce((sum, each) => sum + each.count, 0)),
    "pci.bus_id": `0000${domain}:${rest.join(":")}`.toUpperCase(),
    "pci.device_id": `0x${deviceId.toUpperCase()}10DE`,
    "driver_version": spec.driver,
    "compute_cap": group.computeCapability,
    "memory.total": String(group.memoryMib),
    "memory.used": String(used),
    "memory.free": String(Math.floor(group.memoryMib * 0.993) - used),
    "utilization.gpu": "0",
    "temperature.gpu": String(31 + (index % 4)),
    "power.draw": `${68 + index}.25`,
    "pstate": "P0",
    "pcie.link.width.current": "16",
    "pcie.link.width.max": "16",
    "mig.mode.current": major >= 8 ? "Disabled" : "[N/A]",
    "mig.mode.pending": major >= 8 ? "Disabled" : "[N/A]",
    "persistence_mode": "Enabled",
    "compute_mode": "Default",
    "ecc.mode.current": "Enabled",
    "remapped_rows.pending": major >= 8 ? "No" : "[N/A]",
    "remapped_rows.failure": major >= 8 ? "No" : "[N/A]",
    "retired_pages.pending": major >= 8 ? "[N/A]" : "No",
    "clocks_throttle_reasons.active": "0x0000000000000001",
    "clocks_event_reasons.active": "0x0000000000000001",
    "gpu_recovery_action": "None",
    "fabric.state": switched ? "Completed" : "N/A",
    "fabric.status": switched ? "Success" : "N/A",
    "fabric.cliqueId": switched ? "0" : "N/A",
    "fabric.clusterUuid": switched ? "00000000-0000-0000-0000-000000000000" : "N/A",
    "fabric.health.summary": switched ? "Healthy" : "N/A",
    ...group.cells,
  };
}

function helpText(fields: readonly string[]): string {
  const list = fields.map((field) => `"${field}"\nSee nvidia-smi --help-query-gpu.\n`).join("\n");
  return `List of valid properties to query for the switch "--query-gpu":\n\n${list}`;
}

function listText(gpus: readonly FixtureGpu[]): string {
  return gpus.map((gpu) => `GPU ${gpu.index}: ${gpu.group.name} (UUID: ${gpu.uuid})\n`).join("");
}

function nvlinkText(spec: FixtureNode, gpus: readonly FixtureGpu[]): string {
  return gpus.map((gpu) => {
    const linked = gpus.some((other) => pathBetween(spec, gpu, other).startsWith("NV"));
    const speed = linkCount(gpu.group) === 18 ? "26.562" : "25";
    const links = Array.from(
      { length: linked ? linkCount(gpu.group) : 0 },
      (_, link) => `\t Link ${link}: ${speed} GB/s\n`,
    );
    return `GPU ${gpu.index}: ${gpu.group.name} (UUID: ${gpu.uuid})\n${links.join("")}`;
  }).join("");
}

function topologyText(spec: FixtureNode, gpus: readonly FixtureGpu[]): string {
  const nics = spec.hcas.map((_, at) => `NIC${at}`);
  const labels = [...gpus.map((gpu) => `GPU${gpu.index}`), ...nics];
  const header = ["", ...labels, "CPU Affinity", "NUMA Affinity", "GPU NUMA ID"].join("\t");
  const gpuRows = gpus.map((gpu) => {
    const cells = [
      ...gpus.map((other) => pathBetween(spec, gpu, other)),
      ...spec.hcas.map((_, at) => adapterPath(gpu, at, gpus)),
    ];
    const cpus = gpu.numaNode === 0 ? "0-55,112-167" : "56-111,168-223";
    return [`GPU${gpu.index}`, ...cells, cpus, String(gpu.numaNode), "", "N/A"].join("\t");
  });
  const nicRows = spec.hcas.map((_, at) => {
    const cells = [
      ...gpus.map((gpu) => adapterPath(gpu, at, gpus)),
      ...spec.hcas.map((_, other) => other === at ? " X " : "SYS"),
    ];
    return [`NIC${at}`, ...cells].join("\t");
  });
  // Drivers from 590 on underline the heading even when it goes to a pipe.
  const underlined = Number(spec.driver.split(".")[0]) >= 590;
  return [
    underlined ? `\t\x1b[4m${header.slice(1)}\x1b[0m` : header,
    ...gpuRows,
    ...nicRows,
    "",
    "Legend:",
    "",
    "  X    = Self",
    ...(nics.length === 0 ? [] : ["", "NIC Legend:", "", ...nicLegend(spec.hcas), ""]),
    "",
  ].join("\n");
}

function nicLegend(hcas: readonly FixtureHca[]): string[] {
  return hcas.map((hca, at) => `  NIC${at}: ${hca.name}`);
}

/** The matrix's word for the way between two GPUs. */
function pathBetween(spec: FixtureNode, gpu: FixtureGpu, other: FixtureGpu): string {
  if (gpu.index === other.index) return " X ";
  const pair = Math.floor(gpu.index / 2) === Math.floor(other.index / 2);
  const linked = spec.nvlink === "all" || (spec.nvlink === "pairs" && pair);
  if (linked && gpu.group === other.group) return `NV${linkCount(gpu.group)}`;
  return gpu.numaNode === other.numaNode ? "NODE" : "SYS";
}

/** NVLinks of a GPU of that generation when they all go to the same place. */
function linkCount(group: FixtureGpus): number {
  const major = Number(group.computeCapability.split(".")[0]);
  return major >= 9 ? 18 : group.computeCapability === "8.0" ? 12 : 4;
}

function adapterPath(gpu: FixtureGpu, hca: number, gpus: readonly FixtureGpu[]): string {
  const near = gpus[hca % gpus.length];
  if (near === undefined || near.numaNode !== gpu.numaNode) return "SYS";
  return near.index === gpu.index ? "PIX" : "NODE";
}

/** Quoted for a POSIX shell. */
function quoted(text: string): string {
  return `'${text.replaceAll("'", `'\\''`)}'`;
}
