import { deepEqual, equal } from "node:assert/strict";
import { failureOf } from "./nvidia_failure.ts";

const FIXTURES = new URL("../../../tests/fixtures/hardware/", import.meta.url);

/** Fixture, exit code, expected kind. */
const CASES: readonly (readonly [string, number, string])[] = [
  ["errors/driver-not-loaded.stdout.exit9.txt", 9, "driver_not_loaded"],
  ["errors/version-mismatch.stdout.exit18.txt", 18, "version_mismatch"],
  ["errors/invalid-field.stdout.txt", 2, "field_refused"],
  ["errors/gpu-lost-old.exit15.txt", 15, "gpu_lost"],
  ["errors/topo-failed.exit255.txt", 255, "other"],
  ["errors/topo-dash-i.txt", 255, "other"],
  ["csv/lost-gpu-mid-list.noheader.nounits.exit15.csv", 15, "gpu_lost"],
];

for (const [file, code, kind] of CASES) {
  Deno.test(`failureOf() finds ${kind} in ${file}`, () => {
    const stdout = Deno.readTextFileSync(new URL(file, FIXTURES));
    equal(failureOf({ code, stdout, stderr: "" })?.kind, kind);
    equal(failureOf({ code, stdout: "", stderr: stdout })?.kind, kind);
  });
}

Deno.test("failureOf() names the refused field and the lost GPUs", () => {
  const call = (stdout: string, code = 15) => failureOf({ code, stdout, stderr: "" });
  deepEqual(call('Field "compute_cap" is not a valid field to query.\n\n', 2), {
    kind: "field_refused",
    field: "compute_cap",
  });
  const lost = call(
    "Unable to determine the device handle for GPU0000:65:00.0: Unknown Error\n" +
      "Unable to determine the device handle for GPU 000029CE:00:00.0: GPU is lost.  Reboot\n" +
      " the system to recover this GPU\n",
  );
  deepEqual(lost?.kind === "gpu_lost" ? lost.pciAddresses : [], ["0000:65:00", "29ce:00:00"]);
});

Deno.test("failureOf() goes by the exit code where the text says nothing", () => {
  const kinds = [0, 4, 6, 9, 12, 14, 15, 16, 17, 18, 255].map((code) =>
    failureOf({ code, stdout: "", stderr: "" })?.kind
  );
  deepEqual(kinds, [
    undefined,
    ...["no_permission", "no_devices", "driver_not_loaded", "library_missing"],
    ...["inforom_corrupt", "gpu_lost", "gpu_needs_reset", "no_permission", "version_mismatch"],
    "other",
  ]);
});

Deno.test("failureOf() finds none in a good answer", () => {
  equal(failureOf({ code: 0, stdout: "0, GPU-a, NVIDIA H100\n", stderr: "" }), undefined);
});
