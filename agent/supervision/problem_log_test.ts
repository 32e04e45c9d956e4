import { deepEqual } from "node:assert/strict";
import { ProblemLog, type Troubled } from "./problem_log.ts";

function node(...details: string[]): Troubled {
  return {
    part: "node",
    problems: details.map((detail) => ({ reason: "fabric_degraded", detail, remedy: "repair it" })),
  };
}

Deno.test("ProblemLog writes a problem when it appears and when it is over, and not in between", () => {
  const written: string[] = [];
  const log = new ProblemLog(
    (message, { part }) => written.push(`+ ${part} ${message}`),
    (_, { what }) => written.push(`- ${what}`),
  );
  const gpu = { reason: "gpu_lost", detail: "it is gone", remedy: "" };
  log.tell([node("ib-a has 3 ports left"), { part: "GPU 2", problems: [] }]);
  log.tell([node("ib-a has 2 ports left"), { part: "GPU 2", problems: [gpu] }]);
  log.tell([node("ib-a has 2 ports left", "ib-b has 1 ports left"), {
    part: "GPU 2",
    problems: [{ ...gpu, detail: "it is gone still" }],
  }]);
  log.tell([node("ib-b has 1 ports left"), { part: "GPU 2", problems: [] }]);
  deepEqual(written, [
    "+ node ib-a has 3 ports left",
    "+ GPU 2 it is gone",
    "+ node ib-b has 1 ports left",
    "- node: fabric_degraded",
    "- GPU 2: gpu_lost",
  ]);
});
