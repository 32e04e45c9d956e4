import { deepEqual, equal, ok } from "node:assert/strict";
import { aSpec } from "../core/shard/shard_fake.ts";
import { engineEnvironment } from "./environment.ts";

/** Adapters of a node that is made for mistakes: names that are prefixes of each other. */
const PRESENT = ["mlx5_0", "mlx5_1", "mlx5_10", "mlx5_bond_0"];

/** What NCCL 2.30.7 reads into NCCL_IB_HCA, with one active port 1 on each adapter. */
const SEMANTICS = Deno.readTextFileSync(
  new URL("../../tests/fixtures/hardware/nccl-match.tsv", import.meta.url),
).trimEnd().split("\n").filter((line) => !line.startsWith("#")).map((line) => {
  const [value = "", expected = ""] = line.split("\t");
  return [value, expected.startsWith("(none") ? [] : usedIn(expected)] as const;
});

function usedIn(expected: string): readonly string[] {
  return /^\(?all/i.test(expected) ? PRESENT : expected.replace(/\s*\(.*$/, "").split(",");
}

/** NCCL's own rule, as read from its source: what comes of a value on such a node. */
function usedBy(value: string): readonly string[] {
  const not = value.startsWith("^");
  const rest = not ? value.slice(1) : value;
  const exact = rest.startsWith("=");
  const list = exact ? rest.slice(1) : rest;
  const entries = list.split(",").filter((entry) => entry !== "").map((entry) => {
    const [name = "", port] = entry.split(":");
    return { name, port: port === undefined ? -1 : Number(port) };
  });
  if (entries.length === 0) return not ? [] : PRESENT;
  return PRESENT.filter((device) =>
    entries.some(({ name, port }) =>
      (exact ? device === name : device.startsWith(name)) && (port === -1 || port === 1)
    ) !== not
  );
}

function valueFor(names: readonly string[]): string {
  const env = engineEnvironment(
    aSpec({ hcas: names.map((name) => ({ name, port: 1 })) }),
    { home: "/h", managementInterface: "eth0", engineEnv: {}, ofEngine: {} },
    { path: "/opt/vllm/bin/vllm", adapter: {} },
  );
  return env["NCCL_IB_HCA"] ?? "";
}

Deno.test("the rule that the next test relies on gives what NCCL does", () => {
  for (const [value, used] of SEMANTICS) deepEqual(usedBy(value), used, value);
});

Deno.test("NCCL uses exactly the adapters that placement gave, whatever their names", () => {
  for (let chosen = 1; chosen < 1 << PRESENT.length; chosen++) {
    const names = PRESENT.filter((_, index) => (chosen & (1 << index)) !== 0);
    const value = valueFor(names);
    deepEqual(usedBy(value), names, value);
    ok(/^=[^=^ ]+$/.test(value), "one mark, at the start, and no blanks");
  }
  equal(valueFor([]), "", "an empty list would mean every adapter, so there is none");
});
