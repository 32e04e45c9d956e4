/**
 * `deno task bench:scheduling`: policies for choosing a replica, on eight simulated engines that are
 * processes of their own, with the same traffic for each.
 *
 *   --policies "round robin,least request,vllm cache_aware,sglang cache_aware,heddle"
 *   --shapes "conversations,bursts,mixed,slow replica,lost replica"  --seconds 20  --seed 1
 *
 * `--policies all` also leaves each of Heddle's scorers out. What is on no machine is left out, and
 * said. See also decision.ts: what one decision costs.
 */
import { parseArgs } from "node:util";
import { spawnTask } from "@heddle/common/task";
import { say } from "../../../tools/say.ts";
import { drive, type Measured } from "./drive.ts";
import { type BenchEngine, REPLICAS, startBenchEngine } from "./engines.ts";
import { POLICIES } from "./policies.ts";
import { print } from "./report.ts";
import { type Shape, SHAPES } from "./shapes.ts";

const WARM_SECONDS = 5;
const PEERS = "round robin,least request,vllm cache_aware,sglang cache_aware,heddle";

async function main(): Promise<void> {
  const { values } = parseArgs({
    args: Deno.args,
    options: {
      policies: { type: "string", default: PEERS },
      shapes: { type: "string", default: SHAPES.map(({ name }) => name).join(",") },
      seconds: { type: "string", default: "20" },
      seed: { type: "string", default: "1" },
    },
  });
  const policies = values.policies === "all" ? Object.keys(POLICIES) : values.policies.split(",");
  const shapes = SHAPES.filter(({ name }) => values.shapes.split(",").includes(name));
  await using stack = new AsyncDisposableStack();
  const stage = await Stage.start(stack);
  for (const shape of shapes) {
    const rows: [string, readonly Measured[]][] = [];
    for (const policy of policies) {
      const found = await stage.measure(shape, policy, {
        seconds: Number(values.seconds),
        seed: Number(values.seed),
      });
      if (found !== undefined) rows.push([policy, found]);
    }
    print(shape, rows, Number(values.seconds));
  }
}

/** The engines of all runs; those that a run kills are started again. */
class Stage {
  readonly #engines: BenchEngine[];
  readonly #slow: BenchEngine;
  #runs = 0;

  constructor(engines: BenchEngine[], slow: BenchEngine) {
    this.#engines = engines;
    this.#slow = slow;
  }

  static async start(stack: AsyncDisposableStack): Promise<Stage> {
    const engines = await Promise.all(Array.from({ length: REPLICAS }, () => startBenchEngine()));
    const slow = stack.use(await startBenchEngine(0.25));
    stack.defer(async () => {
      for (const engine of engines) await engine[Symbol.asyncDispose]();
    });
    return new Stage(engines, slow);
  }

  /** Undefined where the policy's program is not there. */
  async measure(
    shape: Shape,
    policy: string,
    run: { readonly seconds: number; readonly seed: number },
  ): Promise<readonly Measured[] | undefined> {
    const start = POLICIES[policy];
    if (start === undefined) throw new Error(`There is no policy ${policy}`);
    const folder = await Deno.makeTempDir();
    try {
      const ports = this.#engines.map(({ port }) => port);
      if (shape.trouble === "slow") ports[0] = this.#slow.port;
      await using router = await start(ports, folder);
      // Compilers and connections are warm before anything is measured, for every policy alike.
      const warm = shape.arrivals({ seconds: WARM_SECONDS, seed: 0, salt: `warm-${this.#runs}` });
      await drive(router.port, warm, () => {});
      const arrivals = shape.arrivals({ ...run, salt: `run-${this.#runs++}` });
      const lose = shape.trouble === "lost" ? () => this.#kill(0) : () => {};
      const found = await drive(router.port, arrivals, lose);
      say(`${shape.name}: ${policy} measured, load ${Deno.loadavg()[0]?.toFixed(1)}`);
      return found;
    } catch (error) {
      say(`${policy} is left out: ${error instanceof Error ? error.message : error}`);
      return undefined;
    } finally {
      await Deno.remove(folder, { recursive: true });
      if (shape.trouble === "lost") this.#engines[0] = await startBenchEngine();
    }
  }

  #kill(index: number): void {
    const engine = this.#engines[index];
    if (engine !== undefined) spawnTask("kill", async () => await engine[Symbol.asyncDispose]());
  }
}

if (import.meta.main) await main();
