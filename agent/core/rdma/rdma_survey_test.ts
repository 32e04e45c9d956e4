import { deepEqual, ok } from "node:assert/strict";
import type { PciFunction } from "../host/pci_survey.ts";
import { type RdmaReadings, surveyRdma } from "./rdma_survey.ts";

const DECLARED = [{ name: "ib-a", hcas: ["mlx5_0"] }];

function reasons(over: Partial<RdmaReadings>): string[] {
  return problems(over).map((problem) => problem.reason);
}

function problems(over: Partial<RdmaReadings>) {
  return surveyRdma({
    sysfsRoot: "/run/heddle/sys",
    rdma: { kind: "missing" },
    pci: { kind: "read", gpus: [], rdmaCapable: [] },
    declared: [],
    addresses: new Map(),
    wsl: false,
    ...over,
  }).problems;
}

function adapter(pciClass: string): PciFunction {
  return { address: "0000:12:00", pciClass, numaNode: 0, driver: "mlx5_core" };
}

Deno.test("surveyRdma() calls a node without adapters an island, not an error", () => {
  deepEqual(reasons({}), []);
  deepEqual(reasons({ rdma: { kind: "devices", devices: [] } }), []);
});

Deno.test("surveyRdma() tells a missing sysfs from one that may not be read", () => {
  deepEqual(reasons({ pci: { kind: "missing" } }), ["sysfs_missing"]);
  deepEqual(reasons({ rdma: { kind: "unreadable", message: "Requires all access" } }), [
    "sysfs_denied",
  ]);
  deepEqual(reasons({ pci: { kind: "missing" }, declared: DECLARED }), [
    "sysfs_missing",
    "fabric_unusable",
  ]);
});

Deno.test("surveyRdma() gives the command that makes sysfs readable", () => {
  const remedy = (over: Partial<RdmaReadings>) => problems(over)[0]?.remedy ?? "";
  const bound = "sudo mkdir -p /run/heddle/sys && sudo mount --bind /sys /run/heddle/sys";
  const missing = { pci: { kind: "missing" } } as const;
  const denied = { rdma: { kind: "unreadable", message: "Requires all access" } } as const;
  ok(remedy(missing).includes(bound));
  ok(remedy({ ...denied, sysfsRoot: "/sys" }).includes(`${bound}\``));
  ok(
    remedy({ ...missing, sysfsRoot: "/my sys" })
      .includes("sudo mkdir -p '/my sys' && sudo mount --bind /sys '/my sys'"),
  );
});

Deno.test("surveyRdma() finds adapters whose RDMA driver is not loaded", () => {
  const pci = (pciClass: string, gpus: readonly PciFunction[] = []) => ({
    kind: "read" as const,
    gpus,
    rdmaCapable: [adapter(pciClass)],
  });
  deepEqual(reasons({ pci: pci("0x020700") }), ["rdma_driver_missing"]);
  deepEqual(reasons({ pci: pci("0x020000") }), []);
  deepEqual(reasons({ pci: pci("0x020000", [adapter("0x030200")]) }), ["rdma_driver_missing"]);
  deepEqual(reasons({ pci: pci("0x020000"), declared: DECLARED }), [
    "rdma_driver_missing",
    "fabric_unusable",
  ]);
});

Deno.test("surveyRdma() advertises no fabric under Windows", () => {
  deepEqual(reasons({ declared: DECLARED, wsl: true }), ["fabric_wsl"]);
});
