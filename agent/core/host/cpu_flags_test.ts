import { equal } from "node:assert/strict";
import { cpuProblem } from "./cpu_flags.ts";

const PLAIN = Array.from({ length: 64 }, (_, at) => at.toString(16).toUpperCase().padStart(4, "0"));

function modalias(features: readonly string[]): string {
  return `cpu:type:x86,ven0000fam0006mod0055:feature:,${features.join(",")}`;
}

Deno.test("cpuProblem() warns of an x86 CPU without AVX2, and only of that", () => {
  equal(cpuProblem(modalias(PLAIN))?.reason, "cpu_without_avx2");
  equal(cpuProblem(modalias([...PLAIN, "0125"])), undefined);
  equal(cpuProblem(undefined), undefined);
  equal(cpuProblem("cpu:type:aarch64:feature:,0000,0001"), undefined);
  equal(cpuProblem(modalias(["0000"])), undefined);
});
