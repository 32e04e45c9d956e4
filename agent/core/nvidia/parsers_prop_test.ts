import { ok } from "node:assert/strict";
import fc from "fast-check";
import { FUZZ_RUNS, mutated } from "../mutated_fake.ts";
import { parseComputeApps } from "./compute_apps.ts";
import { parseMigList } from "./mig_list.ts";
import { countOf, numberOf, parseCsv, textOf } from "./nvidia_csv.ts";
import { failureOf } from "./nvidia_failure.ts";
import { parseFieldList } from "./nvidia_fields.ts";
import { parseNvlinkStatus } from "./nvlink_status.ts";
import { pciAddress, pciDeviceId } from "./pci_address.ts";
import { throttled } from "./throttling.ts";
import { parseTopology } from "./topology.ts";

const FIXTURES = new URL("../../../tests/fixtures/hardware/", import.meta.url);

/** Every fixture that is an output of nvidia-smi. */
const TEXTS = ["csv", "topo", "errors", "list", "compute-apps", "nvlink", "q"].flatMap((folder) =>
  [...Deno.readDirSync(new URL(`${folder}/`, FIXTURES))].map((file) =>
    Deno.readTextFileSync(new URL(`${folder}/${file.name}`, FIXTURES))
  )
);

/** Pieces that are apt to mislead. */
const PIECES = [
  ...["\t", " ", ",", ", ", "\n", "\r\n", "\u001b[4m", "X", " X ", "NV4", "NV", "GPU0", "GPU9"],
  ...["GPU-", "MIG-", "[N/A]", "[Unknown Error]", "0", "-1", "999999999999", '"', "NIC3", "SYS"],
  ...["CPU Affinity", "(UUID: GPU-0)", "\u0000", "é", "", "0000:3d:00.0", "<inactive>", "Link 0:"],
];

const output = mutated(TEXTS, PIECES);
const FIELDS = ["index", "name", "uuid"];

// deno-lint-ignore no-control-regex -- escape codes are no part of what a terminal shows
const ANSI = /\x1b\[[0-9;]*[A-Za-z]/g;

/** What each parser makes of any text. It must not throw; what it returns must stand in the text. */
const PARSERS: Readonly<Record<string, (text: string, code: number) => void>> = {
  "parseCsv()": (text) => {
    for (const row of parseCsv(text, FIELDS).rows) {
      const uuid = textOf(row, "uuid") ?? "";
      ok(uuid.startsWith("GPU-") && text.includes(uuid));
      const index = countOf(row, "index");
      ok(index === undefined || text.includes(String(index)));
      ok(!Number.isNaN(numberOf(row, "name")));
    }
  },
  "parseComputeApps()": (text) => {
    for (const app of parseComputeApps(text)) {
      ok(text.includes(app.gpuUuid) && text.includes(String(app.pid)));
    }
  },
  "parseMigList()": (text) => {
    for (const uuid of parseMigList(text).keys()) ok(text.includes(uuid));
  },
  "parseNvlinkStatus()": (text) => {
    for (const [uuid, { active, inactive }] of parseNvlinkStatus(text)) {
      ok(text.includes(uuid));
      ok(active + inactive <= text.split("Link").length - 1);
    }
  },
  "parseTopology()": (text) => {
    const reading = parseTopology(text);
    if (reading.kind === "unknown") return ok(reading.why !== "");
    const { gpus, nvlinks, adapters } = reading.topology;
    const plain = text.replaceAll(ANSI, "");
    for (const gpu of gpus) ok(new RegExp(`GPU0*${gpu}`).test(plain));
    for (const { a, b, links } of nvlinks) {
      ok(gpus.includes(a) && gpus.includes(b) && a < b && plain.includes(`NV${links}`));
    }
    for (const [gpu, near] of adapters) {
      ok(gpus.includes(gpu) && near.every(({ name }) => plain.includes(name)));
    }
  },
  "failureOf()": (text, code) => {
    const failure = failureOf({ code, stdout: text, stderr: "" });
    ok(failure !== undefined || code === 0);
  },
  "parseFieldList()": (text) => {
    for (const name of parseFieldList(text) ?? []) ok(text.includes(name));
  },
  "pciAddress() and its like": (text) => {
    const address = pciAddress(text);
    ok(address === undefined || /^[0-9a-f]{4,8}:[0-9a-f]{2}:[0-9a-f]{2}$/.test(address));
    const device = pciDeviceId(text);
    ok(device === undefined || text.toLowerCase().includes(device));
    throttled(text);
  },
};

for (const [name, read] of Object.entries(PARSERS)) {
  Deno.test(`${name} never throws, and what it returns stands in the input`, () => {
    fc.assert(
      fc.property(output, fc.integer({ min: 0, max: 255 }), (text, code) => read(text, code)),
      FUZZ_RUNS,
    );
  });
}
