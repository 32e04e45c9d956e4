import { ok } from "node:assert/strict";
import fc from "fast-check";
import { FUZZ_RUNS, mutated } from "../../core/mutated_fake.ts";
import { parseSysfsCapture } from "../../core/host/sysfs_capture.ts";
import { surveyHcas } from "../../core/rdma/hca.ts";
import { CapturedSysfs } from "./captured_sysfs.ts";
import { readRdma } from "./infiniband.ts";
import { readPci } from "./pci.ts";
import { readPortCounters } from "./port_counters.ts";

const FIXTURES = new URL("../../../tests/fixtures/hardware/sysfs/", import.meta.url);

/** Each fixture with its paths whole, and a bus for them to be on. */
const TREES = [...Deno.readDirSync(FIXTURES)].map(({ name }) =>
  Deno.readTextFileSync(new URL(name, FIXTURES))
    .replaceAll(/^(?!#)(?=\S)/gm, "class/infiniband/") + [
    "bus/pci/devices/0000:18:00.0/vendor\t0x10de",
    "bus/pci/devices/0000:18:00.0/class\t0x030200",
    "bus/pci/devices/0000:18:00.0/numa_node\t0",
    "bus/pci/devices/0000:10:00.0/vendor\t0x15b3",
    "bus/pci/devices/0000:10:00.0/class\t0x020700",
  ].join("\n")
);

const PIECES = [
  ...["\t", "\n", "/", "..", "!EINVAL", "!EACCES", "-> ", "-> ../../x", "mlx5_0", "ports/1/"],
  ...[
    "4: ACTIVE",
    "1: DOWN",
    "InfiniBand",
    "Ethernet",
    "400 Gb/sec (4X NDR)",
    "-1",
    "NaN",
    "\u0000",
  ],
  ...["0x15b3", "gids/0", "RoCE v2", "0000:3d:00.0", "", "é", "N/A (no PMA)", "#", "*"],
];

Deno.test("reading a spoilt sysfs never fails, and every HCA and GPU that it gives stands in it", async () => {
  await fc.assert(
    fc.asyncProperty(mutated(TREES, PIECES), async (text) => {
      const sysfs = new CapturedSysfs("captured", parseSysfsCapture(text));
      const reading = await readRdma(sysfs);
      const devices = reading.kind === "devices" ? reading.devices : [];
      const { ports, excluded } = surveyHcas(devices);
      for (const { name, port, rateGbps, roceGidIndex } of ports) {
        ok(text.includes(name), name);
        ok(text.includes(`/${port}`), `${name} port ${port}`);
        ok(rateGbps === undefined || rateGbps > 0);
        ok(roceGidIndex === undefined || text.includes(`gids/${roceGidIndex}`));
        for (const value of (await readPortCounters(sysfs, name, port))?.values() ?? []) {
          ok(Number.isFinite(value) && value >= 0);
        }
      }
      for (const { name, why } of excluded) ok(text.includes(name) && why !== "");
      const bus = await readPci(sysfs);
      if (bus.kind !== "read") return;
      for (const { address } of [...bus.gpus, ...bus.rdmaCapable]) {
        ok(text.toLowerCase().includes(address.slice(-8)), address);
      }
    }),
    FUZZ_RUNS,
  );
});
