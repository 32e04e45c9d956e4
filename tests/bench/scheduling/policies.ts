/** What chooses the replica: Heddle with its scorers or some of them, or another router. */
import { fileURLToPath } from "node:url";
import { stringify } from "yaml";
import type { Weights } from "../../../router/core/schedule/scorers.ts";
import { WEIGHTS } from "./weights.ts";
import { type BenchProcess, freePort, startProcess } from "../router/process.ts";

const ROOT = fileURLToPath(new URL("../../..", import.meta.url)).replace(/\/$/, "");

export interface Running extends AsyncDisposable {
  readonly port: number;
}

type Start = (enginePorts: readonly number[], folder: string) => Promise<Running>;

export const POLICIES: Readonly<Record<string, Start>> = {
  "round robin": peer("vllm-router", "round_robin"),
  "vllm cache_aware": peer("vllm-router", "cache_aware"),
  "sglang cache_aware": peer("sglang-router", "cache_aware"),
  ...Object.fromEntries(
    Object.entries(WEIGHTS).map(([name, weights]) => [name, heddle(weights)]),
  ),
};

function heddle(weights: Weights): Start {
  return async (enginePorts, folder) => {
    const port = freePort();
    const file = `${folder}/router.yaml`;
    await Deno.writeTextFile(
      file,
      stringify({
        listen: `127.0.0.1:${port}`,
        admin: { listen: `127.0.0.1:${freePort()}` },
        state_directory: folder,
        endpoints: enginePorts.map((enginePort, index) => ({
          name: `e${index}`,
          url: `http://127.0.0.1:${enginePort}`,
          models: [{ name: "m" }],
        })),
        scheduling: { profiles: { chat: weights } },
      }),
    );
    const process = await startProcess({
      command: `${ROOT}/bin/heddle-router`,
      args: ["--config", file],
      env: { HEDDLE_DENO: Deno.execPath(), HEDDLE_STATE: folder },
      port,
      readyMs: 120_000,
    });
    return running(port, process);
  };
}

function peer(command: "vllm-router" | "sglang-router", policy: string): Start {
  return async (enginePorts) => {
    const port = freePort();
    const process = await startProcess({
      command,
      args: [
        ...(command === "sglang-router" ? ["launch"] : []),
        ...["--host", "127.0.0.1", "--port", String(port), "--policy", policy],
        ...["--prometheus-port", String(freePort()), "--worker-urls"],
        ...enginePorts.map((enginePort) => `http://127.0.0.1:${enginePort}`),
      ],
      port,
      readyMs: 180_000,
    });
    return running(port, process);
  };
}

function running(port: number, process: BenchProcess): Running {
  return { port, [Symbol.asyncDispose]: () => process[Symbol.asyncDispose]() };
}
