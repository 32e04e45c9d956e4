import { deepEqual, equal } from "node:assert/strict";
import { disjointCliques } from "../gpu/cliques.ts";
import { parseTopology, type Topology } from "./topology.ts";

const FIXTURES = new URL("../../../tests/fixtures/hardware/", import.meta.url);

function read(name: string): string {
  return Deno.readTextFileSync(new URL(name, FIXTURES));
}

function known(text: string): Topology {
  const reading = parseTopology(text);
  if (reading.kind === "unknown") throw new Error(`not read: ${reading.why}`);
  return reading.topology;
}

function groups(topology: Topology): string {
  return disjointCliques(topology.nvlinks).map((clique) => clique.join("")).join(" ");
}

function numa(topology: Topology): string {
  return topology.gpus.map((gpu) => topology.numaNodes.get(gpu) ?? "?").join(" ");
}

/** File, GPUs, NVLink groups, NUMA nodes, adapter nearest to GPU0 with its distance. */
const CASES: readonly (readonly [string, number, string, string, string])[] = [
  ["hgx-a800-8gpu-8bond-tabs", 8, "01234567", "0 0 0 0 1 1 1 1", "mlx5_bond_0 PIX"],
  ["hgx-b300-8gpu-8bond-spaces", 8, "01234567", "0 0 0 0 1 1 1 1", "mlx5_bond_0 PXB"],
  ["gb200-4gpu-no-nic", 4, "0123", "0 0 1 1", ""],
  ["gh200-4gpu-nv6-gpu-numa-id", 4, "0123", "0 1 2 3", ""],
  ["bridge-pairs-nv4-4gpu-1nic", 4, "01 23", "0 0 1 1", "mlx5_0 SYS"],
  ["a100pcie-nv12-pairs-each-gpu-own-numa", 4, "01 23", "0 1 2 3", ""],
  ["a100pcie-nv12-pairs-numa-na", 4, "01 23", "? ? ? ?", ""],
  ["rtx4090-8gpu-no-nvlink", 8, "", "0 0 0 0 1 1 1 1", ""],
  ["5gpu-mixed-5090-4090-gpu0-on-numa1", 5, "", "1 0 0 0 0", ""],
  ["rtx5090-2gpu-phb-tabs", 2, "", "0 0", ""],
  ["a100-4gpu-nv12-nic-sys-tabs", 4, "0123", "1 1 1 1", "rocep49s0 SYS"],
  ["h100-4gpu-nv6-nic-per-gpu-slurm-cpus", 4, "0123", "3 1 7 5", "NIC0 PIX"],
  ["pcie-4gpu-pxb-pix-2nic", 4, "", "0 0 1 1", "rocep177s0f0 SYS"],
  ["2gpu-sys-4roce-phb", 2, "", "0 1", "rocep4s0f0 PHB"],
  ["2-visible-of-8gpu-nv18-10nic", 2, "01", "0 1", "NIC5 PIX"],
  // Not transitive: 0 and 5 are not linked, though both are linked to 1 and to 4.
  ["v100-8gpu-hybrid-mesh-new-driver", 8, "0123 4567", "0 0 0 0 1 1 1 1", ""],
];

for (const [file, count, cliques, numaNodes, nearest] of CASES) {
  Deno.test(`parseTopology() reads ${file}`, () => {
    const topology = known(read(`topo/${file}.txt`));
    equal(topology.gpus.length, count);
    equal(groups(topology), cliques);
    equal(numa(topology), numaNodes);
    const [first] = topology.adapters.get(0) ?? [];
    equal(first === undefined ? "" : `${first.name} ${first.distance}`, nearest);
  });
}

Deno.test("parseTopology() reads a matrix that a terminal or a paste has touched", () => {
  const text = read("topo/rtx5090-2gpu-phb-tabs.txt");
  const want = known(text);
  const header = text.split("\n").find((line) => line.includes("GPU0") && !line.includes("X")) ??
    "";
  const touched = {
    "the heading's first tab is gone": text.replace(header, header.trim()),
    "character sets are switched": text.replaceAll("GPU1", "\x1b(BGPU1\x1b)0"),
    "rows are parted by blanks": text.split("\n").map((line) =>
      /^GPU\d/.test(line) ? line.replaceAll("\t", "  ") : line
    ).join("\n"),
  };
  for (const [what, changed] of Object.entries(touched)) {
    equal(changed === text, false, what);
    deepEqual(known(changed), want, what);
  }
});

Deno.test("parseTopology() refuses what is not such a matrix", () => {
  const refused = (text: string): string => {
    const reading = parseTopology(text);
    return reading.kind === "unknown" ? reading.why : "read";
  };
  equal(
    refused(read("topo/glued-header-from-paste.txt")),
    "the heading NIC11NIC12 is two names in one",
  );
  equal(refused(read("topo/p2p-rw-2gpu-gns.txt")), 'GPU0 to GPU1 says "GNS"');
  equal(refused(read("errors/topo-failed.exit255.txt")), "GPU0 has a column and no row");
  equal(
    refused(read("errors/driver-not-loaded.stdout.exit9.txt")),
    "there is no heading with GPU names",
  );
  equal(refused(""), "there is no heading with GPU names");
  equal(refused("\tGPU0\tGPU1\nGPU0\t X \tNV4\nGPU1\tSYS\t X \n"), "GPU0 and GPU1 do not agree");
  equal(refused("\tGPU0\tGPU1\nGPU0\t X \tNV4\n"), "GPU1 has a column and no row");
});

Deno.test("parseTopology() reads ANSI codes, tabs turned into blanks, and old column names", () => {
  const tabs = read("topo/hgx-a800-8gpu-8bond-tabs.txt");
  const [first = "", ...rest] = tabs.split("\n");
  const ansi = [`\t\x1b[4m${first.slice(1)}\x1b[0m`, ...rest].join("\r\n");
  deepEqual(parseTopology(ansi), parseTopology(tabs));
  const old = "\tGPU0\tGPU1\tmlx5_0\tCPU Affinity\n" +
    "GPU0\t X \tNV2\tPIX\t0-19\nGPU1\tNV2\t X \tSYS\t0-19\nmlx5_0\tPIX\tSYS\t X \n";
  const topology = known(old);
  deepEqual(topology.nvlinks, [{ a: 0, b: 1, links: 2 }]);
  deepEqual(topology.adapters.get(1), [{ name: "mlx5_0", distance: "SYS" }]);
  equal(topology.numaNodes.size, 0);
});

Deno.test("parseTopology() keeps GPUs whose links died out of the others' group", () => {
  const dead = "        GPU0    GPU1    GPU2    CPU Affinity    NUMA Affinity\n" +
    "GPU0     X      NV18    NODE    0-63    0\nGPU1    NV18     X      NODE    0-63    0\n" +
    "GPU2    NODE    NODE     X      0-63    0\n";
  equal(groups(known(dead)), "01");
});
