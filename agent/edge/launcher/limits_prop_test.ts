import { ok } from "node:assert/strict";
import fc from "fast-check";
import { FUZZ_RUNS, mutated } from "../../core/mutated_fake.ts";
import { limitsOf } from "./limits.ts";

const OUTPUTS = [
  "shm 65536 1024\nmemlock unlimited\n",
  "shm 263876072 263876040\nmemlock 8192\n",
  "shm - -\nmemlock unknown\n",
  "memlock 67108864\nshm 1 0\nshm 2 1",
];
const PIECES = [
  "",
  " ",
  "\n",
  "\r",
  "\t",
  "-",
  "-1",
  "0",
  "9".repeat(20),
  "1e9",
  "NaN",
  "shm ",
  "memlock ",
];

Deno.test("limitsOf() never throws, and every number it returns stands in the input", () => {
  fc.assert(
    fc.property(mutated(OUTPUTS, PIECES), (text) => {
      const limits = limitsOf(text.split("\n"));
      const stands = (name: string, bytes: number | undefined) => {
        if (bytes === undefined) return;
        const word = bytes === Infinity ? "unlimited" : `${bytes / 1024}`;
        const lines = text.split("\n").filter((line) => line.startsWith(`${name} `));
        // The shell's numbers may begin with zeros.
        ok(
          lines.some((line) =>
            line.split(" ").some((each) => each.replace(/^0+(?=\d)/, "") === word)
          ),
        );
      };
      stands("shm", limits.shmTotalBytes);
      stands("shm", limits.shmFreeBytes);
      stands("memlock", limits.memlockBytes);
      ok((limits.shmTotalBytes === undefined) === (limits.shmFreeBytes === undefined));
      for (const bytes of Object.values(limits)) ok(bytes >= 0 && !Number.isNaN(bytes));
    }),
    FUZZ_RUNS,
  );
});
