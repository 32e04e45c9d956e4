import { deepEqual, equal, match } from "node:assert/strict";
import { parseXid } from "../health/xid.ts";
import { parseComputeApps } from "../nvidia/compute_apps.ts";
import { failureOf } from "../nvidia/nvidia_failure.ts";
import { type FieldGroup, FIELDS } from "../nvidia/nvidia_fields.ts";
import { parseCsv, textOf } from "../nvidia/nvidia_csv.ts";
import { parseTopology } from "../nvidia/topology.ts";
import { surveyGpus } from "./gpu_facts.ts";
import type { Answer, GpuReadings, GpuRows } from "./readings.ts";

const NOT_ASKED = { kind: "not_asked" } as const;
const ON_BUS = { address: "0000:18:00", pciClass: "0x030000", numaNode: 0, driver: "nouveau" };
const NO_TOOL = { nvidiaSmi: undefined, identity: NOT_ASKED } as const;

/** An answer of nvidia-smi for one group of fields. */
function answer(group: FieldGroup, stdout: string, code = 0): Answer<GpuRows> {
  const { rows, rest } = parseCsv(stdout, FIELDS[group]);
  return {
    kind: "answered",
    value: { rows: new Map(rows.map((row) => [textOf(row, "uuid") ?? "", row])), rest },
    failure: failureOf({ code, stdout, stderr: "" }),
  };
}

const H100 = "0x233010DE, 81559, 9.0, 580.65.06, NVIDIA H100 80GB HBM3";
const TWO = `0, GPU-a, 00000000:18:00.0, ${H100}\n1, GPU-b, 00000000:2A:00.0, ${H100}\n`;
const HEALTHY: Partial<GpuReadings> = {
  live: answer("live", "GPU-a, 4, 0, 31, P0\nGPU-b, 70000, 97, 64, P0\n"),
  mode: answer(
    "mode",
    "GPU-a, Disabled, Disabled, Enabled, Default\nGPU-b, Disabled, Disabled, Enabled, Default\n",
  ),
  health: answer("health", "GPU-a, No, No, [N/A], 0x1\nGPU-b, No, No, [N/A], 0x4\n"),
  recent: answer(
    "recent",
    "GPU-a, None, Completed, Success, 0, 00000000-0000-0000-0000-000000000000, Healthy\n" +
      "GPU-b, None, Completed, Success, 0, 00000000-0000-0000-0000-000000000000, Healthy\n",
  ),
};

/** What --query-compute-apps prints, as the agent asks for it. */
function apps(stdout: string): GpuReadings["processes"] {
  return { kind: "answered", value: parseComputeApps(stdout), failure: undefined };
}

/** Two healthy H100s, but for `over`; `known` follows the identity unless it is given. */
function readings(over: Partial<GpuReadings> = {}): GpuReadings {
  const identity = over.identity ?? answer("identity", TWO);
  return {
    nvidiaSmi: "/usr/bin/nvidia-smi",
    identity,
    live: NOT_ASKED,
    mode: NOT_ASKED,
    health: NOT_ASKED,
    recent: NOT_ASKED,
    pcie: NOT_ASKED,
    migInstances: new Map(),
    topology: NOT_ASKED,
    nvlinks: new Map(),
    processes: NOT_ASKED,
    known: identity.kind === "answered" ? identity.value.rows : new Map(),
    throttledSamples: new Map(),
    pci: { kind: "missing" },
    faults: new Map(),
    systemMemoryMib: 257_000,
    overrides: [],
    held: undefined,
    strangers: new Map(),
    wsl: false,
    ...HEALTHY,
    ...over,
  };
}

/** `reason` of every problem by GPU index, and of the node. */
function reasons(over: Partial<GpuReadings>): { gpus: string[]; node: string[] } {
  const survey = surveyGpus(readings(over));
  return {
    gpus: survey.gpus.flatMap((gpu) =>
      gpu.problems.map((problem) => `${gpu.index} ${problem.reason}`)
    ),
    node: survey.problems.map((problem) => problem.reason),
  };
}

const known = (text: string) => {
  const each = answer("identity", text);
  return each.kind === "answered" ? each.value.rows : new Map();
};

Deno.test("surveyGpus() tells all of a healthy GPU", () => {
  const survey = surveyGpus(readings({
    topology: {
      kind: "answered",
      value: parseTopology(
        "\tGPU0\tGPU1\tCPU Affinity\tNUMA Affinity\nGPU0\t X \tNV18\t0-9\t0\nGPU1\tNV18\t X \t0-9\t1\n",
      ),
      failure: undefined,
    },
  }));
  deepEqual(survey.problems, []);
  equal(survey.driverVersion, "580.65.06");
  deepEqual(survey.gpus[1], {
    index: 1,
    uuid: "GPU-b",
    name: "NVIDIA H100 80GB HBM3",
    gpuClass: "h100-80g",
    pciBusId: "0000:2a:00",
    memoryTotalMib: 81559,
    memoryUsedMib: 70000,
    computeCapability: "9.0",
    numaNode: 1,
    nvlinkClique: 0,
    adapters: [],
    sysfsPath: undefined,
    pcieWidth: undefined,
    pcieWidthMax: undefined,
    nvlinkDomain: undefined,
    utilizationPercent: 97,
    temperatureCelsius: 64,
    problems: [],
  });
});

/** What is read differently, and the reasons that must follow. */
const CASES: readonly (readonly [string, Partial<GpuReadings>, string[], string[]])[] = [
  [
    "a driver that hangs",
    {
      identity: { kind: "hung", call: "--query-gpu=index" },
      known: known(TWO),
    },
    ["0 driver_hung", "1 driver_hung"],
    ["driver_hung"],
  ],
  [
    "a driver that hangs on the first call",
    {
      identity: { kind: "hung", call: "--help-query-gpu" },
    },
    [],
    ["driver_hung"],
  ],
  [
    "live values that hang",
    {
      live: { kind: "hung", call: "--query-gpu=uuid" },
    },
    ["0 driver_hung", "1 driver_hung"],
    ["driver_hung"],
  ],
  [
    "a library of another version than the module",
    {
      identity: answer(
        "identity",
        "Failed to initialize NVML: Driver/library version mismatch\nNVML library version: 535.161\n",
        18,
      ),
      known: known(TWO),
    },
    ["0 driver_failed", "1 driver_failed"],
    ["driver_failed"],
  ],
  [
    "a module that is not loaded",
    {
      identity: answer(
        "identity",
        "NVIDIA-SMI has failed because it couldn't communicate with the NVIDIA driver.\n",
        9,
      ),
    },
    [],
    ["driver_failed"],
  ],
  [
    "a GPU lost in mid-list",
    {
      identity: answer(
        "identity",
        `0, GPU-a, 00000000:18:00.0, ${H100}\n` +
          "Unable to determine the device handle for GPU0000:2A:00.0: Unknown Error\n" +
          `${Array(8).fill("[Unknown Error]").join(", ")}\n`,
        15,
      ),
      known: known(TWO),
    },
    ["1 gpu_lost"],
    [],
  ],
  [
    "a GPU that is gone after the driver numbered the others anew",
    {
      identity: answer("identity", `0, GPU-b, 00000000:2A:00.0, ${H100}\n`),
      known: new Map([...known(TWO), ...known(`0, GPU-b, 00000000:2A:00.0, ${H100}\n`)]),
    },
    [],
    ["gpu_missing"],
  ],
  [
    "a GPU that fell off without a word",
    {
      identity: answer("identity", `0, GPU-a, 00000000:18:00.0, ${H100}\n`),
      known: known(TWO),
    },
    ["1 gpu_lost"],
    [],
  ],
  [
    "a GPU that only the bus shows",
    {
      pci: {
        kind: "read",
        gpus: ["0000:18:00", "0000:2a:00", "0000:3a:00", "0000:5d:00"].map((address, at) => ({
          address,
          pciClass: "0x030200",
          numaNode: 0,
          driver: at === 3 ? "vfio-pci" : "nvidia",
        })),
        rdmaCapable: [],
      },
    },
    [],
    ["gpu_missing"],
  ],
  [
    "an infoROM that is corrupt beside good data",
    {
      identity: answer("identity", `${TWO}WARNING: infoROM is corrupted at gpu 0000:18:00.0\n`, 14),
    },
    [],
    [],
  ],
  [
    "MIG",
    {
      mode: answer("mode", "GPU-a, Enabled, Enabled, Enabled, Default\n"),
      migInstances: new Map([["GPU-a", ["3g.40gb"]]]),
    },
    ["0 mig_enabled"],
    [],
  ],
  [
    "a change of MIG that waits",
    {
      mode: answer("mode", "GPU-b, Disabled, Enabled, Enabled, Default\n"),
    },
    [],
    ["mig_change_pending"],
  ],
  [
    "persistence off and a prohibited GPU",
    {
      mode: answer("mode", "GPU-a, [N/A], [N/A], Disabled, Prohibited\n"),
    },
    ["0 compute_prohibited"],
    ["gpu_persistence_off"],
  ],
  [
    "a vGPU and a MIG name",
    {
      identity: answer(
        "identity",
        "0, GPU-a, 00000000:18:00.0, [N/A], 20480, 8.0, 535.1, GRID A100D-20C\n" +
          "1, GPU-b, 00000000:19:00.0, [N/A], 40448, 9.0, 535.1, NVIDIA H100 MIG 3g.40gb\n",
      ),
    },
    ["0 vgpu", "1 mig_instance"],
    [],
  ],
  [
    "memory that is not told",
    {
      identity: answer(
        "identity",
        "0, GPU-a, 00000000:18:00.0, 0x233010DE, [N/A], 9.0, 535.1, NVIDIA H100 80GB HBM3\n",
      ),
    },
    ["0 memory_unknown"],
    [],
  ],
  [
    "an unknown compute capability",
    {
      identity: answer(
        "identity",
        "0, GPU-a, 00000000:18:00.0, 0x233010DE, 81559, [N/A], 450.1, NVIDIA H100 80GB HBM3\n",
      ),
    },
    [],
    [],
  ],
  [
    "rows of memory that wait to be remapped, or cannot be",
    {
      health: answer("health", "GPU-a, Yes, No, [N/A], 0x1\nGPU-b, No, Yes, Yes, 0x1\n"),
    },
    ["0 row_remap_pending", "1 row_remap_failed", "1 page_retirement_pending"],
    [],
  ],
  [
    "a GPU that requires a reset, and one that cannot be read",
    {
      live: answer(
        "live",
        "GPU-a, 0, [GPU requires reset], [GPU requires reset], [GPU requires reset]\n" +
          "GPU-b, 6, [Unknown Error], [Unknown Error], [Unknown Error]\n",
      ),
    },
    ["0 gpu_needs_recovery", "1 gpu_error"],
    [],
  ],
  [
    "values that are merely not available",
    {
      live: answer("live", "GPU-a, [N/A], [N/A], [N/A], [Not Supported]\n"),
    },
    [],
    [],
  ],
  [
    "a recovery action",
    {
      recent: answer("recent", "GPU-a, Drain and Reset, [N/A], [N/A], [N/A], [N/A], [N/A]\n"),
    },
    ["0 gpu_needs_recovery"],
    [],
  ],
  [
    "NVLink's fabric in progress, failed, unhealthy and not supported",
    {
      recent: answer(
        "recent",
        "GPU-a, None, In Progress, N/A, N/A, N/A, N/A\n" +
          "GPU-b, None, Completed, Insufficient Resources, 0, 0, N/A\n",
      ),
    },
    ["0 fabric_not_ready", "1 fabric_failed"],
    [],
  ],
  [
    "NVLink's fabric unhealthy, and not supported",
    {
      recent: answer(
        "recent",
        "GPU-a, None, Completed, Success, 0, 0, Unhealthy\n" +
          "GPU-b, None, Not Supported, N/A, N/A, N/A, N/A\n",
      ),
    },
    ["0 fabric_failed"],
    [],
  ],
  [
    "hardware that slows a GPU, once and three times",
    {
      throttledSamples: new Map([["GPU-a", 2], ["GPU-b", 3]]),
    },
    [],
    ["gpu_throttled"],
  ],
  [
    "a process on a GPU that no shard holds",
    {
      held: new Set(["GPU-b"]),
      processes: {
        kind: "answered",
        value: ["GPU-a", "GPU-b"].map((gpuUuid) => ({
          gpuUuid,
          pid: 7,
          memoryMib: 900,
          name: "python3",
        })),
        failure: undefined,
      },
    },
    ["0 foreign_process"],
    [],
  ],
  [
    "NVLinks of which some are down",
    {
      nvlinks: new Map([
        ["GPU-a", { active: 4, inactive: 2 }],
        ["GPU-b", { active: 6, inactive: 0 }],
      ]),
    },
    [],
    ["nvlink_inactive"],
  ],
  [
    "a card without a bridge",
    {
      nvlinks: new Map([["GPU-a", { active: 0, inactive: 4 }]]),
    },
    [],
    [],
  ],
  [
    "faults in the kernel log, one of them the application's",
    {
      faults: new Map(
        ["NVRM: Xid (PCI:0000:18:00): 31, MMU", "NVRM: Xid (PCI:0000:2a:00): 95, uncontained"]
          .flatMap((line) => parseXid(line) ?? []).map((event) => [event.pciAddress, [event]]),
      ),
    },
    ["1 xid_fatal"],
    [],
  ],
  [
    "a fault that was contained",
    {
      faults: new Map(
        ["NVRM: Xid (PCI:0000:18:00): 94, pid=7, contained"]
          .flatMap((line) => parseXid(line) ?? []).map((event) => [event.pciAddress, [event]]),
      ),
    },
    [],
    ["gpu_xid"],
  ],
  [
    "a topology that cannot be read",
    {
      topology: {
        kind: "answered",
        value: parseTopology("GPU0 GPU1 CPU Affinity\nFailed to run topology matrix\n"),
        failure: failureOf({ code: 255, stdout: "Failed to run topology matrix", stderr: "" }),
      },
    },
    [],
    ["topology_unknown"],
  ],
  [
    "a group of fields that fails alone",
    {
      health: answer("health", "Unknown Error of some kind\n", 255),
    },
    [],
    ["nvidia_smi_partial"],
  ],
  [
    "a GPU without a UUID",
    {
      identity: answer(
        "identity",
        `${TWO}2, [N/A], [N/A], [N/A], [N/A], 8.7, 540.4, Orin (nvgpu)\n`,
      ),
    },
    [],
    ["gpu_unidentified"],
  ],
  [
    "no nvidia-smi and no GPU",
    { ...NO_TOOL, pci: { kind: "read", gpus: [], rdmaCapable: [] } },
    [],
    [],
  ],
  [
    "no nvidia-smi and a bus that cannot be read",
    { ...NO_TOOL, pci: { kind: "missing" } },
    [],
    ["nvidia_smi_missing"],
  ],
  [
    "no nvidia-smi and a GPU on the bus",
    { ...NO_TOOL, pci: { kind: "read", gpus: [ON_BUS], rdmaCapable: [] } },
    [],
    ["driver_missing"],
  ],
  [
    "an nvidia-smi that may not be run",
    {
      identity: { kind: "not_started", why: "denied", message: "Requires run access" },
    },
    [],
    ["nvidia_smi_denied"],
  ],
];

for (const [name, over, gpus, node] of CASES) {
  Deno.test(`surveyGpus() judges ${name}`, () => {
    deepEqual(reasons(over), { gpus, node });
  });
}

Deno.test("surveyGpus() says what to do with every problem, and names the pending GPU", () => {
  for (const [name, over] of CASES) {
    const survey = surveyGpus(readings(over));
    for (const each of [...survey.problems, ...survey.gpus.flatMap((gpu) => gpu.problems)]) {
      match(each.detail, /\S{2}.*\S/, name);
      match(each.remedy, /^[A-Z].*\.$/, name);
    }
  }
});

Deno.test("surveyGpus() gives a unified part the system's memory", () => {
  const [gpu] = surveyGpus(readings({
    identity: answer(
      "identity",
      "0, GPU-a, 0000000F:01:00.0, 0x2E1210DE, [N/A], 12.1, 580.95, NVIDIA GB10\n",
    ),
    live: answer("live", "GPU-a, [N/A], 0, 35, P8\n"),
    systemMemoryMib: 124_610,
  })).gpus;
  equal(gpu?.gpuClass, "gb10-128g");
  equal(gpu?.memoryTotalMib, 124_610);
  equal(gpu?.memoryUsedMib, undefined);
  equal(gpu?.pciBusId, "000f:01:00");
  deepEqual(gpu?.problems, []);
});

Deno.test("surveyGpus() takes 100 % without a byte in use for unknown", () => {
  const [gpu] = surveyGpus(readings({ live: answer("live", "GPU-a, 0, 100, 31, P0\n") })).gpus;
  equal(gpu?.utilizationPercent, undefined);
});

Deno.test("surveyGpus() names the NVLink domain that spans nodes, and none where there is none", () => {
  const domains = surveyGpus(readings({
    recent: answer(
      "recent",
      "GPU-a, None, Completed, Success, 4, 7D5C2E5F-0000-0000-0000-000000000001, Healthy\n" +
        "GPU-b, None, Completed, Success, 0, 00000000-0000-0000-0000-000000000000, Healthy\n",
    ),
  })).gpus.map((gpu) => gpu.nvlinkDomain);
  deepEqual(domains, ["7d5c2e5f-0000-0000-0000-000000000001/4", undefined]);
});

/** `State : In Progress` and so on out of `nvidia-smi -q`, as the cells of a query say them. */
/** What `nvidia-smi -q` says, by the words before the colon. */
function saidIn(file: string): ReadonlyMap<string, string> {
  const fixture = new URL(`../../../tests/fixtures/hardware/q/${file}`, import.meta.url);
  return new Map(
    Deno.readTextFileSync(fixture).split("\n").map((line) =>
      line.split(" : ").map((each) => each.trim())
    )
      .map(([name = "", value = ""]) => [name, value]),
  );
}

function fabricCells(file: string): string {
  const said = saidIn(file);
  const cell = (name: string): string => said.get(name) ?? "[N/A]";
  return `GPU-a, None, ${cell("State")}, ${cell("Status")}, ${cell("CliqueId")}, ` +
    `${cell("ClusterUUID")}, ${cell("Summary")}\n`;
}

Deno.test("surveyGpus() keeps a GPU out that waits for its rows to be remapped", () => {
  const pending = saidIn("remapped-rows-pending.txt").get("Pending") ?? "";
  const health = answer("health", `GPU-a, ${pending}, No, [N/A], 0x1\n`);
  deepEqual(reasons({ health }).gpus, ["0 row_remap_pending"]);
});

Deno.test("surveyGpus() keeps GPUs out whose NVLink fabric was seen not to work", () => {
  const reason = (file: string) => reasons({ recent: answer("recent", fabricCells(file)) }).gpus;
  deepEqual(reason("fabric-in-progress.txt"), ["0 fabric_not_ready"]);
  deepEqual(reason("fabric-insufficient-resources.txt"), ["0 fabric_failed"]);
});

Deno.test("surveyGpus() tells a card with fewer PCIe lanes than it could use, and keeps it", () => {
  const narrow = answer("pcie", "GPU-a, 16, 16\nGPU-b, 4, 16\n");
  const survey = surveyGpus(readings({ pcie: narrow }));
  deepEqual(survey.gpus.map(({ pcieWidth, pcieWidthMax }) => [pcieWidth, pcieWidthMax]), [
    [16, 16],
    [4, 16],
  ]);
  const [problem] = survey.problems.filter(({ reason }) => reason === "gpu_pcie_narrow");
  match(problem?.detail ?? "", /on GPU 1 \(4 of 16\)/);
  deepEqual(survey.gpus.flatMap(({ problems }) => problems), []);
  // A cell without a number is unknown, and so is a machine that was never asked.
  for (const pcie of [answer("pcie", "GPU-a, [N/A], 16\nGPU-b, 0, 16\n"), NOT_ASKED]) {
    deepEqual(reasons({ pcie }).node, reasons({}).node);
  }
});

Deno.test("surveyGpus() names who uses a GPU beside an engine, with what it takes and what to do", () => {
  const { gpus } = surveyGpus(readings({
    held: new Set(["GPU-a", "GPU-b"]),
    strangers: new Map([[811, "python3"], [4_110_331, "python3"]]),
    processes: apps(
      "GPU-a, 76, 68596, VLLM::Worker_TP0\nGPU-b, 77, 68596, VLLM::Worker_TP1\n" +
        "GPU-b, 811, [N/A], [Not Found]\nGPU-b, 812, 25, /usr/bin/nvidia-cuda-mps-server\n" +
        "GPU-b, 4110331, 2048, /opt/envs/app/bin/python3\n",
    ),
  }));
  deepEqual(gpus.map(({ problems }) => problems.map(({ reason }) => reason)), [[], [
    "foreign_process",
  ]]);
  const [problem] = gpus[1]?.problems ?? [];
  equal(
    problem?.detail,
    "Processes that are not Heddle's use it beside an engine: pid 811 (python3), " +
      "pid 4110331 (/opt/envs/app/bin/python3, 2048 MiB).",
  );
  match(problem?.remedy ?? "", /^Stop them: .* the engine, which goes on/);
});
