import { deepEqual, equal } from "node:assert/strict";
import type { DeclaredFabric } from "./declared_fabric.ts";
import { checkFabrics } from "./fabric.ts";
import { type HcaReading, type PortReading, surveyHcas } from "./hca.ts";

function port(over: Partial<PortReading> = {}): PortReading {
  return {
    port: 1,
    state: "4: ACTIVE",
    physState: "5: LinkUp",
    linkLayer: "InfiniBand",
    rate: "400 Gb/sec (4X NDR)",
    gids: [],
    ...over,
  };
}

function hca(name: string, ports: PortReading[] = [port()], over: Partial<HcaReading> = {}) {
  return {
    name,
    devicePath: `/sys/devices/pci0000:00/0000:10:00.0/infiniband/${name}`,
    nodeType: "1: CA",
    nodeDesc: "host HCA-1",
    vendor: "0x15b3",
    sysImageGuid: "fc4c:ea03:00aa:0230",
    numaNode: "0",
    virtualFunction: false,
    softParent: false,
    switchManagement: false,
    ports,
    ...over,
  };
}

const FABRIC: DeclaredFabric = {
  name: "ib-a",
  hcas: ["mlx5_0", "mlx5_1"],
  linkLayer: "infiniband",
  rateGbps: 400,
};

/** Fabrics as `name rate degraded hcas`, and the reasons of the node's problems. */
function check(readings: readonly HcaReading[], declared: readonly DeclaredFabric[] = [FABRIC]) {
  const { fabrics, problems, ports } = checkFabrics(declared, surveyHcas(readings));
  return {
    fabrics: fabrics.map((each) =>
      `${each.name} ${each.rateGbps} ${each.degraded ? "degraded" : "whole"} ${each.hcas.join("+")}`
    ),
    reasons: problems.map((problem) => problem.reason),
    detail: problems.map((problem) => problem.detail).join("\n"),
    ports,
  };
}

Deno.test("checkFabrics() advertises a whole fabric at the rate of its slowest port", () => {
  const { fabrics, reasons, ports } = check([hca("mlx5_0"), hca("mlx5_1")]);
  deepEqual(fabrics, ["ib-a 400 whole mlx5_0+mlx5_1"]);
  deepEqual(reasons, []);
  deepEqual(ports.map((each) => each.fabric), ["ib-a", "ib-a"]);
});

Deno.test("checkFabrics() goes on with what is left of a fabric, and says what is not", () => {
  const down = port({ state: "1: DOWN", physState: "2: Polling" });
  const { fabrics, reasons, detail } = check([hca("mlx5_0"), hca("mlx5_1", [down])]);
  deepEqual(fabrics, ["ib-a 400 degraded mlx5_0"]);
  deepEqual(reasons, ["fabric_degraded"]);
  equal(/mlx5_1 port 1 is in state "1: DOWN"/.test(detail), true);
  const absent = check([hca("mlx5_0")]);
  deepEqual(absent.fabrics, ["ib-a 400 degraded mlx5_0"]);
  equal(/mlx5_1 is not on this node/.test(absent.detail), true);
});

Deno.test("checkFabrics() does not advertise a fabric without a usable port", () => {
  const init = port({ state: "2: INIT" });
  const { fabrics, reasons, ports } = check([hca("mlx5_0", [init])]);
  deepEqual(fabrics, []);
  deepEqual(reasons, ["fabric_unusable"]);
  deepEqual(ports[0]?.problems.map((problem) => problem.reason), ["no_subnet_manager"]);
});

Deno.test("checkFabrics() refuses the wrong link layer, and a mixture of both", () => {
  const roce = hca("mlx5_1", [port({ linkLayer: "Ethernet" })]);
  const wrong = check([hca("mlx5_0"), roce]);
  deepEqual(wrong.fabrics, ["ib-a 400 degraded mlx5_0"]);
  deepEqual(wrong.ports[1]?.problems.map((problem) => problem.reason), ["link_layer_wrong"]);
  const any: DeclaredFabric = { name: "f", hcas: ["mlx5_0", "mlx5_1"] };
  const mixed = check([hca("mlx5_0"), roce], [any]);
  deepEqual(mixed.fabrics, []);
  deepEqual(mixed.reasons, ["fabric_mixed_link_layers"]);
});

Deno.test("checkFabrics() calls a fabric degraded whose port lost lanes, and keeps the port", () => {
  const slow = hca("mlx5_1", [port({ rate: "100 Gb/sec (1X NDR)" })]);
  const { fabrics, reasons } = check([hca("mlx5_0"), slow]);
  deepEqual(fabrics, ["ib-a 100 degraded mlx5_0+mlx5_1"]);
  deepEqual(reasons, ["fabric_rate_low"]);
});

Deno.test("checkFabrics() takes an adapter with one usable port for whole, or the port it names", () => {
  const dual = hca("mlx5_0", [
    port(),
    port({ port: 2, state: "1: DOWN", physState: "3: Disabled" }),
  ]);
  deepEqual(check([dual], [{ name: "f", hcas: ["mlx5_0"] }]).reasons, []);
  const second = check([dual], [{ name: "f", hcas: ["mlx5_0:2"] }]);
  deepEqual(second.fabrics, []);
  deepEqual(second.ports.map((each) => each.fabric), ["", "f"]);
});

Deno.test("checkFabrics() keeps an adapter in the first fabric that names it", () => {
  const { fabrics, reasons } = check([hca("mlx5_0")], [
    { name: "f", hcas: ["mlx5_0"] },
    { name: "g", hcas: ["mlx5_0"] },
  ]);
  deepEqual(fabrics, ["f 400 whole mlx5_0"]);
  deepEqual(reasons, ["fabric_unusable"]);
});

Deno.test("surveyHcas() leaves out what carries nothing for GPUs, and says why", () => {
  const others: [string, Partial<HcaReading>, RegExp][] = [
    ["mlx5_7", { virtualFunction: true }, /virtual function/],
    ["rxe0", {}, /software/],
    ["siw_eth0", {}, /software/],
    ["ibsoft", { devicePath: "/sys/devices/virtual/infiniband/ibsoft" }, /software/],
    ["rocep0", { softParent: true }, /software/],
    ["mlx5_9", { switchManagement: true }, /NVSwitch/],
    ["rdmap0", { vendor: "0x1d0f" }, /EFA/],
    ["irdma0", { nodeType: "4: RNIC" }, /iWARP/],
    ["odd0", { ports: [port({ linkLayer: "Unknown" })] }, /neither/],
  ];
  const survey = surveyHcas(others.map(([name, over]) => hca(name, [port()], over)));
  deepEqual(survey.ports, []);
  for (const [at, [name, , why]] of others.entries()) {
    const excluded = survey.excluded[at];
    equal(excluded?.name, name);
    equal(why.test(excluded?.why ?? ""), true, name);
  }
  const { detail } = check([hca("rxe0")], [{ name: "f", hcas: ["rxe0"] }]);
  equal(/rxe0 cannot be used: it is a software device/.test(detail), true);
});

Deno.test("surveyHcas() reads rates and NUMA nodes, and leaves what is not told unknown", () => {
  const [a, b, c] = surveyHcas([
    hca("a", [port({ rate: "2.5 Gb/sec (1X SDR)" })], { numaNode: "-1" }),
    hca("b", [port({ rate: "800 Gb/sec (4X XDR)" })], { numaNode: "3" }),
    hca("c", [port({ rate: undefined, state: undefined, linkLayer: undefined })]),
  ]).ports;
  deepEqual([a?.rateGbps, a?.numaNode, b?.rateGbps, b?.numaNode], [2, undefined, 800, 3]);
  deepEqual(c?.problems.map((problem) => problem.reason), [
    "port_state_unknown",
    "link_layer_unknown",
  ]);
  equal(c?.rateGbps, undefined);
  equal(c?.active, false);
});
