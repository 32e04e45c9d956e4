import { deepEqual, equal } from "node:assert/strict";
import {
  cellOf,
  countOf,
  type CsvTable,
  mergeRows,
  numberOf,
  parseCell,
  parseCsv,
  textOf,
} from "./nvidia_csv.ts";

const FIXTURES = new URL("../../../tests/fixtures/hardware/csv/", import.meta.url);

function table(file: string, fields: string): CsvTable {
  return parseCsv(Deno.readTextFileSync(new URL(file, FIXTURES)), fields.split(" "));
}

Deno.test("parseCell() gives every word of the vocabulary its meaning", () => {
  const why = (text: string): string => {
    const cell = parseCell(text);
    return cell.kind === "absent" ? cell.why : `value ${cell.text}`;
  };
  deepEqual(
    [
      ...["[N/A]", " N/A", "[Not Supported]", "[Unknown Error]", "[GPU requires reset]", "ERR!"],
      ...["[Insufficient Permissions]", "[Requested functionality has been deprecated]", ""],
      ...["[Function Not Found]", "[GPU is lost]", "[not supported]", "[Brand new word]", "P0"],
    ].map(why),
    [
      ...["not_available", "not_available", "not_supported", "error", "requires_reset", "error"],
      ...["no_permission", "not_available", "empty", "not_available", "lost", "not_supported"],
      ...["unrecognised", "value P0"],
    ],
  );
});

Deno.test("parseCsv() reads a table with heading and units", () => {
  const { rows, rest } = table(
    "a800-8gpu-busy.csv",
    "index name memory.total memory.free driver_version compute_cap",
  );
  equal(rows.length, 8);
  deepEqual(rest, []);
  equal(countOf(rows[1], "memory.free"), 12549);
  equal(countOf(rows[7], "memory.total"), 81920);
  equal(textOf(rows[0], "name"), "NVIDIA A800-SXM4-80GB");
});

Deno.test("parseCsv() passes over the sentence and the row of errors of a lost GPU", () => {
  const fields = "index name temperature.gpu memory.used memory.free a b pstate power.limit";
  const text = Deno.readTextFileSync(
    new URL("lost-gpu-mid-list.noheader.nounits.exit15.csv", FIXTURES),
  );
  const { rows } = parseCsv(text, fields.split(" "));
  deepEqual(rows.map((row) => textOf(row, "index")), ["0", undefined, "2"]);
  // With the UUID among the fields, as discovery asks, the row of errors is no row at all.
  const asked = parseCsv(
    [
      "0, GPU-aa, 1695",
      "Unable to determine the device handle for GPU0000:02:00.0: Unknown Error",
      "[Unknown Error], [Unknown Error], [Unknown Error]",
      "2, GPU-cc, 1700",
    ].join("\n"),
    ["index", "uuid", "memory.used"],
  );
  deepEqual(asked.rows.map((row) => textOf(row, "uuid")), ["GPU-aa", "GPU-cc"]);
  equal(asked.rest.length, 2);
});

Deno.test("parseCsv() leaves what the driver does not say unknown, never 0", () => {
  const spark = table(
    "gb10-memory-na.csv",
    "index name memory.total memory.used memory.free utilization.gpu power.draw temperature.gpu",
  ).rows[0];
  equal(countOf(spark, "memory.total"), undefined);
  deepEqual(cellOf(spark, "memory.total"), { kind: "absent", why: "not_available" });
  equal(numberOf(spark, "utilization.gpu"), 0);
  equal(numberOf(spark, "power.draw"), 11.17);
  equal(numberOf(spark, "temperature.gpu"), 35);
  const orin = table("jetson-orin-noheader-nounits.csv", "index name a b c d e").rows[0];
  equal(textOf(orin, "name"), "Orin (nvgpu)");
  equal(countOf(orin, "a"), undefined);
  const [gh200] = table("gh200-144g-2gpu-noheader.csv", "index name driver memory.total cap").rows;
  equal(countOf(gh200, "memory.total"), 146831);
  const [a, b] = table("unknown-error-cells-noheader.csv", "index name uuid t u p l used total")
    .rows;
  deepEqual(cellOf(a, "t"), { kind: "absent", why: "error" });
  equal(countOf(a, "total"), 49140);
  equal(numberOf(b, "t"), 32);
  const mixed = table("mixed-a100-pcie-and-sxm.csv", "index name memory.total compute_cap").rows;
  equal(mixed.filter((row) => textOf(row, "name") === "NVIDIA A100 80GB PCIe").length, 6);
});

Deno.test("parseCsv() takes no line for a GPU without the exact count of cells", () => {
  const fields = ["index", "uuid", "name"];
  const { rows, rest } = parseCsv(
    "0, GPU-a1, NVIDIA H100\n1, GPU-b2\n2, GPU-c3, NVIDIA, H100\n3, MIG-d4, NVIDIA H100\n",
    fields,
  );
  equal(rows.length, 1);
  equal(rest.length, 3);
  equal(table("table-err.txt", "index uuid name").rows.length, 0);
  equal(table("table-jetson.txt", "index uuid name").rows.length, 0);
  const old = table("rtx3080-old-driver-na.csv", "index uuid name");
  equal(old.rows.length, 0);
});

Deno.test("mergeRows() keeps name and size of a GPU that can no longer be read", () => {
  const fields = ["uuid", "name", "memory.total"];
  const row = (text: string) => parseCsv(text, fields).rows[0] ?? new Map();
  const merged = mergeRows(
    row("GPU-a, NVIDIA L4, 23034"),
    row("GPU-a, [Unknown Error], [Unknown Error]"),
  );
  equal(textOf(merged, "name"), "NVIDIA L4");
  equal(countOf(merged, "memory.total"), 23034);
});
