import { ok } from "node:assert/strict";
import fc from "fast-check";
import { parseComputeApps } from "./compute_apps.ts";
import { parseMigList } from "./mig_list.ts";
import { countOf, numberOf, parseCsv, textOf } from "./nvidia_csv.ts";
import { failureOf } from "./nvidia_failure.ts";
import { parseFieldList } from "./nvidia_fields.ts";
import { parseNvlinkStatus } from "./nvlink_status.ts";
import { pciAddress } from "./pci_address.ts";
import { parseTopology } from "./topology.ts";

const FIXTURES = new URL("../../../tests/fixtures/hardware/", import.meta.url);

/** Every fixture that is an output of nvidia-smi. */
const TEXTS = ["csv", "topo", "errors", "list", "compute-apps", "nvlink", "q"].flatMap((folder) =>
  [...Deno.readDirSync(new URL(`${folder}/`, FIXTURES))].map((file) =>
    Deno.readTextFileSync(new URL(`${folder}/${file.name}`, FIXTURES))
  )
);

/** Pieces that are apt to mislead. */
const PIECES = fc.constantFrom(
  ...["\t", " ", ",", ", ", "\n", "\r\n", "\u001b[4m", "X", " X ", "NV4", "NV", "GPU0", "GPU9"],
  ...["GPU-", "MIG-", "[N/A]", "[Unknown Error]", "0", "-1", "999999999999", '"', "NIC3", "SYS"],
  ...["CPU Affinity", "(UUID: GPU-0)", "\u0000", "é", "", "0000:3d:00.0"],
);

/** A fixture after some cuts, insertions and doublings. */
const mutated = fc.tuple(
  fc.constantFrom(...TEXTS),
  fc.array(fc.tuple(fc.nat(), fc.nat(24), PIECES), { minLength: 1, maxLength: 8 }),
).map(([text, edits]) =>
  edits.reduce((each, [at, cut, piece]) => {
    const from = at % (each.length + 1);
    return cut > 20
      ? each.slice(0, from) + each.slice(Math.max(0, from - cut * 8))
      : each.slice(0, from) + piece + each.slice(from + cut);
  }, text)
);

const FIELDS = ["index", "name", "uuid"];

Deno.test("parsers never throw, and every GPU that they return stands in the input", () => {
  fc.assert(
    fc.property(mutated, fc.integer({ min: 0, max: 255 }), (text, code) => {
      for (const row of parseCsv(text, FIELDS).rows) {
        const uuid = textOf(row, "uuid") ?? "";
        ok(uuid.startsWith("GPU-") && text.includes(uuid));
        const index = countOf(row, "index");
        ok(index === undefined || text.includes(String(index)));
        ok(!Number.isNaN(numberOf(row, "name")));
      }
      for (const app of parseComputeApps(text)) {
        ok(text.includes(app.gpuUuid) && text.includes(String(app.pid)));
      }
      for (const uuid of parseMigList(text).keys()) ok(text.includes(uuid));
      for (const uuid of parseNvlinkStatus(text).keys()) ok(text.includes(uuid));
      const reading = parseTopology(text);
      if (reading.kind === "known") {
        const { gpus, nvlinks } = reading.topology;
        for (const gpu of gpus) ok(new RegExp(`GPU0*${gpu}`).test(text));
        for (const { a, b, links } of nvlinks) {
          ok(gpus.includes(a) && gpus.includes(b) && a < b && text.includes(`NV${links}`));
        }
      }
      const failure = failureOf({ code, stdout: text, stderr: "" });
      ok(failure !== undefined || code === 0);
      parseFieldList(text);
      pciAddress(text);
    }),
    { numRuns: 1_000 },
  );
});
