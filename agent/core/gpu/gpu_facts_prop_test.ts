import { ok } from "node:assert/strict";
import fc from "fast-check";
import { failureOf } from "../nvidia/nvidia_failure.ts";
import { parseCsv, textOf } from "../nvidia/nvidia_csv.ts";
import { type FieldGroup, FIELDS } from "../nvidia/nvidia_fields.ts";
import { parseTopology } from "../nvidia/topology.ts";
import { surveyGpus } from "./gpu_facts.ts";
import type { Answer, GpuRows } from "./readings.ts";

/** Cells that real drivers print, wherever they may turn up. */
const cell = fc.constantFrom(
  ...["0", "1", "2", "81559", "[N/A]", "N/A", "[Unknown Error]", "[GPU requires reset]", "ERR!"],
  ...["GPU-a", "GPU-b", "MIG-c", "Enabled", "Disabled", "Yes", "No", "None", "Completed", "P0"],
  ...["NVIDIA H100 80GB HBM3", "NVIDIA GB10", "00000000:18:00.0", "-1", "1e9", "", "9.0"],
);

/** Lines of cells, sometimes of the right number. */
const output = (group: FieldGroup) =>
  fc.array(
    fc.oneof(
      fc.array(cell, { minLength: FIELDS[group].length, maxLength: FIELDS[group].length }),
      fc.array(cell, { maxLength: 12 }),
    ).map((cells) => cells.join(", ")),
    { maxLength: 6 },
  ).map((lines) => lines.join("\n"));

function answer(group: FieldGroup, stdout: string, code: number): Answer<GpuRows> {
  const { rows, rest } = parseCsv(stdout, FIELDS[group]);
  return {
    kind: "answered",
    value: { rows: new Map(rows.map((row) => [textOf(row, "uuid") ?? "", row])), rest },
    failure: failureOf({ code, stdout, stderr: "" }),
  };
}

Deno.test("surveyGpus() never throws, invents no GPU, and calls none usable without memory", () => {
  fc.assert(
    fc.property(
      output("identity"),
      output("live"),
      output("mode"),
      output("health"),
      output("recent"),
      fc.constantFrom(0, 2, 9, 15, 18, 255),
      (identityText, live, mode, health, recent, code) => {
        const identity = answer("identity", identityText, code);
        const known = identity.kind === "answered" ? identity.value.rows : new Map();
        const { gpus, problems } = surveyGpus({
          nvidiaSmi: "/usr/bin/nvidia-smi",
          identity,
          live: answer("live", live, code),
          mode: answer("mode", mode, code),
          health: answer("health", health, code),
          recent: answer("recent", recent, code),
          pcie: answer("pcie", live, code),
          migInstances: new Map(),
          topology: { kind: "answered", value: parseTopology(recent), failure: undefined },
          nvlinks: new Map(),
          processes: { kind: "not_asked" },
          known,
          throttledSamples: new Map(),
          pci: { kind: "missing" },
          faults: new Map(),
          systemMemoryMib: undefined,
          overrides: [],
          held: undefined,
          strangers: new Map(),
          wsl: false,
        });
        for (const gpu of gpus) {
          ok(identityText.includes(gpu.uuid) && gpu.uuid.startsWith("GPU-"));
          ok(gpu.problems.length > 0 || (gpu.memoryTotalMib ?? 0) > 0);
          ok(gpu.problems.length > 0 || gpu.gpuClass !== "");
        }
        // Nothing usable is never nothing said.
        ok(gpus.length > 0 || problems.length > 0);
      },
    ),
    { numRuns: 10_000 },
  );
});
