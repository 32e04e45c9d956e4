/** An engine of the bench and Heddle in front of it, in a folder of their own. */
import { fileURLToPath } from "node:url";
import { type Gateway, heddle } from "./gateways.ts";
import { type BenchProcess, freePort, startProcess } from "./process.ts";

const ENGINE = fileURLToPath(new URL("./engine.ts", import.meta.url));

export function startEngine(port: number): Promise<BenchProcess> {
  return startProcess({
    command: Deno.execPath(),
    args: ["run", "-P=test", "--quiet", "--no-prompt", ENGINE, String(port)],
    port,
  });
}

export interface Stage {
  readonly enginePort: number;
  readonly router: Gateway & { readonly process: BenchProcess };
  /** The sum of a metric's lines. */
  metric(name: string): Promise<number>;
}

export async function withHeddle(act: (stage: Stage) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir();
  try {
    const enginePort = freePort();
    await using _engine = await startEngine(enginePort);
    await using router = await heddle(enginePort, folder);
    const { process, adminPort } = router;
    if (process === undefined) throw new Error("The router is no process");
    await act({
      enginePort,
      router: { ...router, process },
      async metric(name) {
        const text = await (await fetch(`http://127.0.0.1:${adminPort}/metrics`)).text();
        return text.split("\n").filter((line) => line.startsWith(name))
          .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" ") + 1)), 0);
      },
    });
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}
