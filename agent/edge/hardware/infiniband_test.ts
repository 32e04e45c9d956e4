import { deepEqual, equal, ok } from "node:assert/strict";
import fc from "fast-check";
import { parseSysfsCapture } from "../../core/host/sysfs_capture.ts";
import { type HcaSurvey, surveyHcas } from "../../core/rdma/hca.ts";
import { CapturedSysfs } from "./captured_sysfs.ts";
import { readRdma } from "./infiniband.ts";

const FIXTURES = new URL("../../../tests/fixtures/hardware/sysfs/", import.meta.url);

async function surveyOf(tsv: string): Promise<HcaSurvey> {
  const capture = parseSysfsCapture(tsv, "class/infiniband/");
  const reading = await readRdma(new CapturedSysfs("captured", capture));
  return surveyHcas(reading.kind === "devices" ? reading.devices : []);
}

async function survey(file: string): Promise<HcaSurvey> {
  return await surveyOf(await Deno.readTextFile(new URL(file, FIXTURES)));
}

Deno.test("readRdma() reads a GB10's one card as four devices, two of them up", async () => {
  const { ports, excluded } = await survey("gb10-roce-one-port-down.tsv");
  deepEqual(excluded, []);
  deepEqual(ports.map((each) => `${each.name} ${each.linkLayer} ${each.active} ${each.rateGbps}`), [
    "rocep1s0f0 ethernet true 200",
    "rocep1s0f1 ethernet false 40",
    "roceP2p1s0f0 undefined true 200",
    "roceP2p1s0f1 undefined false undefined",
  ]);
  deepEqual(ports[0]?.problems, []);
  equal(ports[1]?.problems[0]?.reason, "port_down");
});

Deno.test("readRdma() leads to no adapter among EFA and software devices", async () => {
  for (const file of ["efa.tsv", "rxe.tsv"]) {
    const { ports, excluded } = await survey(file);
    deepEqual(ports, []);
    equal(excluded.length, 1);
  }
});

Deno.test("readRdma() reads a port whose counters cannot be read", async () => {
  const { ports } = await survey("restricted-pf-einval.tsv");
  equal(ports.length, 1);
  equal(ports[0]?.active, true);
  equal(ports[0]?.linkLayer, "infiniband");
});

Deno.test("readRdma() reads devices without the usual files", async () => {
  const { ports } = await survey("irdma-iwarp-no-pma.tsv");
  // irdma0 has a state and no link layer; i40iw0 shows nothing but counters.
  deepEqual(ports.map((each) => each.name), ["i40iw0", "irdma0"]);
  ok(ports.every((each) => each.problems.length > 0));
});

Deno.test("readRdma() finds the GID for RoCE v2 over IPv4", async () => {
  const { ports } = await survey("roce-gid-table-host.tsv");
  equal(ports[0]?.linkLayer, "ethernet");
  equal(ports[0]?.roceGidIndex, 3);
});

Deno.test("readRdma() knows a switch's management function and a virtual function", async () => {
  const { ports, excluded } = await surveyOf([
    "mlx5_0/device/vendor\t0x15b3",
    "mlx5_0/device/vpd\t*NVSwitch SMDL=SW_MNG",
    "mlx5_0/ports/1/state\t4: ACTIVE",
    "mlx5_1/device/vendor\t0x15b3",
    "mlx5_1/device/physfn\t-> ../0000:10:00.0",
    "mlx5_1/ports/1/state\t4: ACTIVE",
  ].join("\n"));
  deepEqual(ports, []);
  deepEqual(excluded.map((each) => each.name), ["mlx5_0", "mlx5_1"]);
});

Deno.test("readRdma() says that there is no class directory, or that it may not be read", async () => {
  const read = (tsv: string) => readRdma(new CapturedSysfs("captured", parseSysfsCapture(tsv)));
  deepEqual(await read(""), { kind: "missing" });
  equal((await read("class/infiniband\t!EACCES")).kind, "unreadable");
});

Deno.test("surveyHcas() never throws, and every HCA that it returns stands in the input", () => {
  const text = fc.option(
    fc.oneof(
      fc.string(),
      fc.constantFrom(
        ...["4: ACTIVE", "1: DOWN", "2: INIT", "InfiniBand", "Ethernet", "Unknown", "4: RNIC"],
        ...["400 Gb/sec (4X NDR)", "0x15b3", "0x1d0f", "-1", "0", "NaN Gb/sec", "9e9 Gb/sec"],
      ),
    ),
    { nil: undefined },
  );
  const portReading = fc.record({
    port: fc.nat(9),
    state: text,
    physState: text,
    linkLayer: text,
    rate: text,
    gids: fc.constant([]),
  });
  const reading = fc.record({
    name: fc.string(),
    devicePath: text,
    nodeType: text,
    nodeDesc: text,
    vendor: text,
    sysImageGuid: text,
    numaNode: text,
    virtualFunction: fc.boolean(),
    softParent: fc.boolean(),
    switchManagement: fc.boolean(),
    ports: fc.array(portReading, { maxLength: 3 }),
  });
  fc.assert(
    fc.property(fc.array(reading, { maxLength: 4 }), (readings) => {
      for (const port of surveyHcas(readings).ports) {
        const from = readings.filter((each) => each.name === port.name);
        ok(from.some((each) => each.ports.some((one) => one.port === port.port)));
        ok(port.rateGbps === undefined || port.rateGbps > 0);
        ok(port.numaNode === undefined || port.numaNode >= 0);
        const said = from.some((each) => each.ports.some((one) => one.state?.startsWith("4")));
        ok(!port.active || said);
      }
    }),
    { numRuns: 10_000 },
  );
});
