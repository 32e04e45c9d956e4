/** Eight simulated engines, each a process, and a slow ninth. */
import { fileURLToPath } from "node:url";
import { type BenchProcess, freePort, startProcess } from "../router/process.ts";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url)).replace(/\/$/, "");

export interface BenchEngine extends AsyncDisposable {
  readonly port: number;
}

export const REPLICAS = 8;

/** Slow enough that eight of them and what is measured have room on two cores. */
const FLAGS = [
  ...["--max-model-len", "8192", "--max-num-seqs", "32", "--num-gpu-blocks-override", "2000"],
  ...["--sim-load-ms", "0", "--sim-overhead-ms", "5", "--enable-prompt-tokens-details"],
  "--disable-uvicorn-access-log",
];

function speedsOf(part: number): readonly string[] {
  const speed = (tokens: number) => String(tokens * part);
  return [
    ...["--sim-prefill-tokens-per-s", speed(4_000), "--sim-decode-tokens-per-s", speed(25)],
    ...["--sim-decode-tokens-per-s-total", speed(300)],
  ];
}

/** `part` of the speed that the others have. */
export async function startBenchEngine(part = 1): Promise<BenchEngine> {
  const port = freePort();
  const process: BenchProcess = await startProcess({
    command: `${ROOT}/bin/heddle-sim`,
    args: ["serve", "m", "--port", String(port), ...FLAGS, ...speedsOf(part)],
    env: { HEDDLE_DENO: Deno.execPath() },
    port,
    readyMs: 120_000,
  });
  return { port, [Symbol.asyncDispose]: () => process[Symbol.asyncDispose]() };
}
