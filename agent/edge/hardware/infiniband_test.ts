import { deepEqual, equal, ok } from "node:assert/strict";
import fc from "fast-check";
import { surveyHcas } from "../../core/rdma/hca.ts";
import { readRdma } from "./infiniband.ts";

const FIXTURES = new URL("../../../tests/fixtures/hardware/sysfs/", import.meta.url);

/**
 * Lays a captured tree out below a temporary root. A file that the kernel refuses to read (EINVAL)
 * is a folder here: opening works and reading fails, too.
 */
async function lay(root: string, tsv: string): Promise<void> {
  for (const line of tsv.split("\n")) {
    const [path, content] = line.split("\t");
    if (path === undefined || content === undefined || line.startsWith("#")) continue;
    const at = `${root}/class/infiniband/${path}`;
    await Deno.mkdir(at.replace(/\/[^/]*$/, ""), { recursive: true });
    if (content === "!EINVAL") await Deno.mkdir(at);
    else if (content.startsWith("-> ")) {
      const target = `${root}/class/infiniband/${content.slice(3)}`;
      await Deno.mkdir(target, { recursive: true });
      await Deno.symlink(content.slice(3), at);
    } else await Deno.writeTextFile(at, `${content}\n`);
  }
}

async function withTree<T>(tsv: string, use: (root: string) => Promise<T>): Promise<T> {
  const root = await Deno.makeTempDir();
  try {
    await lay(root, tsv);
    return await use(root);
  } finally {
    await Deno.remove(root, { recursive: true });
  }
}

async function survey(file: string) {
  const tsv = await Deno.readTextFile(new URL(file, FIXTURES));
  return await withTree(tsv, async (root) => {
    const reading = await readRdma(root);
    return surveyHcas(reading.kind === "devices" ? reading.devices : []);
  });
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

Deno.test("readRdma() reads a RoCE port", async () => {
  const { ports } = await survey("roce-gid-table-host.tsv");
  equal(ports[0]?.linkLayer, "ethernet");
});

Deno.test("readRdma() knows a switch's management function and a virtual function", async () => {
  const tree = [
    "mlx5_0/device/vendor\t0x15b3",
    "mlx5_0/device/vpd\t\u0082*NVSwitch\u0090SMDL=SW_MNG",
    "mlx5_0/ports/1/state\t4: ACTIVE",
    "mlx5_1/device/vendor\t0x15b3",
    "mlx5_1/device/physfn/vendor\t0x15b3",
    "mlx5_1/ports/1/state\t4: ACTIVE",
  ].join("\n");
  await withTree(tree, async (root) => {
    const reading = await readRdma(root);
    const { ports, excluded } = surveyHcas(reading.kind === "devices" ? reading.devices : []);
    deepEqual(ports, []);
    deepEqual(excluded.map((each) => each.name), ["mlx5_0", "mlx5_1"]);
  });
});

Deno.test("readRdma() says that there is no class directory", async () => {
  await withTree("", async (root) => {
    deepEqual(await readRdma(root), { kind: "missing" });
  });
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
    { numRuns: 1_000 },
  );
});
