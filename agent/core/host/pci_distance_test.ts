import { deepEqual, equal } from "node:assert/strict";
import { functionOf, nearHcas, pciDistance } from "./pci_distance.ts";

const at = (path: string, numaNode: number | undefined = 0) => ({
  path: `../../../devices/${path}`,
  numaNode,
});

// A switch: its upper side 01:00.0, two lower sides, a device below each.
const SWITCH = "pci0000:00/0000:00:01.0/0000:01:00.0";
const GPU = at(`${SWITCH}/0000:02:00.0/0000:03:00.0`);

Deno.test("pciDistance() says what is between two functions", () => {
  const to = (path: string, numaNode?: number) => pciDistance(GPU, at(path, numaNode));
  equal(to(`${SWITCH}/0000:02:01.0/0000:04:00.0/infiniband/mlx5_0`), "PIX");
  equal(to(`${SWITCH}/0000:02:02.0/0000:05:00.0/0000:06:00.0/0000:07:00.0`), "PXB");
  equal(to("pci0000:00/0000:00:02.0/0000:08:00.0"), "PHB");
  equal(to("pci0000:80/0000:80:01.0/0000:81:00.0"), "NODE");
  equal(to("pci0001:00/0001:00:01.0/0001:01:00.0", 1), "SYS");
});

Deno.test("pciDistance() does not guess", () => {
  const far = "pci0000:80/0000:80:01.0/0000:81:00.0";
  equal(pciDistance(GPU, { path: far, numaNode: undefined }), undefined);
  equal(pciDistance(GPU, at("virtual/infiniband/rxe0")), undefined);
  equal(pciDistance({ path: "", numaNode: 0 }, GPU), undefined);
  equal(pciDistance(GPU, at("pci0000:00")), undefined);
});

Deno.test("functionOf() finds the function that an adapter is on", () => {
  equal(
    functionOf(`../../devices/${SWITCH}/0000:02:01.0/0000:04:00.0/infiniband/a`),
    "0000:04:00.0",
  );
  equal(functionOf("../../devices/virtual/infiniband/rxe0"), undefined);
  equal(functionOf(undefined), undefined);
});

const HCAS = [
  { name: "far", ...at("pci0000:80/0000:80:01.0/0000:81:00.0") },
  { name: "near", ...at(`${SWITCH}/0000:02:01.0/0000:04:00.0`) },
  { name: "virtual", ...at("virtual/x") },
  { name: "nowhere", path: undefined, numaNode: 0 },
];

Deno.test("nearHcas() has the nearest first, and leaves out what cannot be told", () => {
  const gpu = { adapters: undefined, sysfsPath: GPU.path, numaNode: 0 };
  deepEqual(nearHcas(gpu, HCAS), [
    { name: "near", distance: "PIX" },
    { name: "far", distance: "NODE" },
  ]);
  deepEqual(nearHcas({ ...gpu, sysfsPath: undefined }, HCAS), []);
});

Deno.test("nearHcas() believes the driver's matrix first, of adapters that there are", () => {
  const adapters = [{ name: "far", distance: "PHB" }, { name: "NIC7", distance: "PIX" }];
  deepEqual(nearHcas({ adapters, sysfsPath: GPU.path, numaNode: 0 }, HCAS), [
    { name: "far", distance: "PHB" },
  ]);
});
