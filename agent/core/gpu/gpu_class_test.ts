import { deepEqual, equal } from "node:assert/strict";
import { classifyGpu, type GpuKind, type GpuNaming } from "./gpu_class.ts";

const FIXTURES = new URL("../../../tests/fixtures/hardware/", import.meta.url);

function naming(name: string, memoryMib?: number, over: Partial<GpuNaming> = {}): GpuNaming {
  return {
    name,
    memoryMib,
    memoryNotReported: memoryMib === undefined,
    pciDeviceId: undefined,
    systemMemoryMib: undefined,
    ...over,
  };
}

function classOf(kind: GpuKind): string {
  return "gpuClass" in kind ? kind.gpuClass : kind.kind;
}

Deno.test("classifyGpu() gives every row of classes.tsv its class", () => {
  const lines = Deno.readTextFileSync(new URL("classes.tsv", FIXTURES)).split("\n")
    .filter((line) => line !== "" && !line.startsWith("#"));
  const wrong: string[] = [];
  for (const line of lines) {
    const [name = "", memory = "", , deviceId = "", expected = ""] = line.split("\t");
    const got = classOf(classifyGpu(naming(name, memory === "-" ? undefined : Number(memory), {
      pciDeviceId: deviceId === "-" ? undefined : deviceId,
      systemMemoryMib: 62_800,
    })));
    if (got !== expected) wrong.push(`${name} ${memory}: ${got}, not ${expected}`);
  }
  deepEqual(wrong, []);
  equal(lines.length, 67);
});

/** The rows of the facts' table that classes.tsv leaves out, and other names the rule must hold on. */
const FURTHER: readonly (readonly [string, number, string])[] = [
  ["NVIDIA H20", 97871, "h20-96g"],
  ["NVIDIA H800", 81559, "h800-80g"],
  ["NVIDIA H100 NVL", 95830, "h100-nvl-94g"],
  ["NVIDIA GH200 120GB", 97871, "gh200-96g"],
  ["NVIDIA B300 SXM6 AC", 275040, "b300-270g"],
  ["NVIDIA A100-SXM4-80GB", 81920, "a100-80g"],
  ["NVIDIA A100-PG509-200", 40960, "a100-pg509-200-40g"],
  ["NVIDIA A800 80GB PCIe LC", 81920, "a800-pcie-lc-80g"],
  ["NVIDIA A10", 23028, "a10-24g"],
  ["NVIDIA A40", 46068, "a40-48g"],
  ["NVIDIA L40", 46068, "l40-48g"],
  ["Tesla V100-SXM2-16GB", 16384, "v100-16g"],
  ["Tesla V100-SXM3-32GB-H", 32768, "v100-h-32g"],
  ["Tesla P100-PCIE-16GB", 16280, "p100-pcie-16g"],
  ["NVIDIA RTX 6000 Ada Generation", 49140, "rtx6000-ada-48g"],
  [
    "NVIDIA RTX PRO 6000 Blackwell Max-Q Workstation Edition",
    97887,
    "rtxpro6000-blackwell-maxq-96g",
  ],
  ["NVIDIA GeForce RTX 4090", 49140, "rtx4090-48g"],
  ["NVIDIA GeForce RTX 5090", 32607, "rtx5090-32g"],
  ["NVIDIA GeForce RTX 2080 SUPER", 8192, "rtx2080-super-8g"],
  ["NVIDIA GeForce RTX 2080 Ti", 22528, "rtx2080-ti-22g"],
  ["NVIDIA GeForce GTX 1060 6GB", 6144, "gtx-1060-6g"],
  ["TITAN RTX", 24220, "titan-rtx-24g"],
  ["NVIDIA Quadro RTX 8000", 46080, "quadro-rtx8000-48g"],
  ["NVIDIA H100L-2-24C", 24576, "vgpu:h100l-2-24c"],
  ["NVIDIA A100-1-5CME", 5120, "vgpu:a100-1-5cme"],
  ["GRID P40-1B4", 1024, "vgpu:p40-1b4"],
  ["NVIDIA A100-SXM4-40GB MIG 1c.3g.20gb", 20096, "mig:1c.3g.20gb"],
  ["NVIDIA-Graphics-Device", 189471, "pci-unknown-186g"],
  ["NVIDIA PG506-242/243", 40960, "pci-unknown-40g"],
  ["Tesla PG503-216", 32768, "pci-unknown-32g"],
  ["MIG 1g.24gb-me", 24192, "mig:1g.24gb-me"],
  ["Tesla V100-DGXS-32GB", 32508, "v100-dgxs-32g"],
  ["NVIDIA RTX 4000 SFF Ada Generation", 20475, "rtx4000-sff-ada-20g"],
  ["NVIDIA RTX A2000 8GB Laptop GPU", 8192, "rtxa2000-laptop-8g"],
  ["NVIDIA T1000 8GB", 8192, "t1000-8g"],
  ["  nvidia   h100  80gb hbm3 ", 81559, "h100-80g"],
  ["NVIDIA R200 NVL (Preview)", 400_000, "r200-nvl-preview-391g"],
];

for (const [name, memoryMib, expected] of FURTHER) {
  Deno.test(`classifyGpu() names ${name.trim()} of ${memoryMib} MiB ${expected}`, () => {
    equal(classOf(classifyGpu(naming(name, memoryMib))), expected);
  });
}

Deno.test("classifyGpu() takes system memory only for a known unified part that reports none", () => {
  const systemMemoryMib = 124_610;
  equal(
    classOf(classifyGpu(naming("NVIDIA GB10", undefined, { systemMemoryMib }))),
    "gb10-128g",
  );
  deepEqual(
    classifyGpu(naming("NVIDIA GB10", undefined, { systemMemoryMib, memoryNotReported: false })),
    { kind: "memory_unknown" },
  );
  deepEqual(classifyGpu(naming("NVIDIA H100 80GB HBM3", undefined, { systemMemoryMib })), {
    kind: "memory_unknown",
  });
  deepEqual(classifyGpu(naming("NVIDIA H100 80GB HBM3", 0, { systemMemoryMib })), {
    kind: "memory_unknown",
  });
});

Deno.test("classifyGpu() follows an override by name and memory", () => {
  const overrides = [{ name: "nvidia graphics device", memoryMib: 294912, gpuClass: "vr200-288g" }];
  equal(classOf(classifyGpu(naming("NVIDIA Graphics Device", 294912), overrides)), "vr200-288g");
  equal(
    classOf(classifyGpu(naming("NVIDIA Graphics Device", 81559), overrides)),
    "pci-unknown-80g",
  );
  equal(
    classOf(classifyGpu(naming("NVIDIA A100-4C", 4096), [{
      name: "NVIDIA A100-4C",
      gpuClass: "a100-40g",
    }])),
    "vgpu:a100-4c",
  );
});

Deno.test("classifyGpu() has no class for a name that says nothing", () => {
  equal(classifyGpu(naming("  ", 81559)).kind, "name_unknown");
  equal(classifyGpu(naming("NVIDIA", 81559)).kind, "name_unknown");
});
