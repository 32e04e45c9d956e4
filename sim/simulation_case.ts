/** A simulated engine inside a test's own process, on a free port. */
import { readConfig } from "./config.ts";
import { parseArguments } from "./core/options.ts";
import { Simulation } from "./simulation.ts";

/** Fast enough that a test waits for nothing, slow enough that steps are still ordered. */
const FAST = [
  ...["--port", "0", "--sim-overhead-ms", "0", "--sim-prefill-tokens-per-s", "1000000"],
  ...["--sim-decode-tokens-per-s", "20000", "--disable-uvicorn-access-log"],
];

export interface SimulationCase extends AsyncDisposable {
  readonly simulation: Simulation;
  readonly url: string;
  /** Exits that the engine asked for instead of ending the test. */
  readonly exits: { readonly code: number; readonly how: string }[];
  /** Resolves when the engine asks for an exit. */
  readonly exited: Promise<void>;
  get(path: string, headers?: Record<string, string>): Promise<Response>;
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<Response>;
  /** The value of the first metric that starts with `name`. */
  metric(name: string): Promise<number>;
  /** Resolves when that value is what `fits` wants. Rejects when it does not come to that. */
  metricWill(name: string, fits: (value: number) => boolean): Promise<void>;
}

/** Scrapes that a metric may take to change: seconds, even on a busy machine. */
const SCRAPES_MAX = 5_000;

/** Starts an engine that serves "org/weights" as "tiny" and "alias". */
export async function startSimulation(...args: readonly string[]): Promise<SimulationCase> {
  const parsed = parseArguments([...FAST, "--served-model-name", "tiny", "alias", ...args]);
  const config = readConfig({ ...parsed, positionals: ["org/weights"] }, () => undefined);
  const exits: { code: number; how: string }[] = [];
  const exited = Promise.withResolvers<void>();
  const simulation = new Simulation({
    config,
    version: "0.0.1",
    clock: performance,
    exit: (code, how) => {
      exits.push({ code, how });
      exited.resolve();
    },
  });
  const url = `http://127.0.0.1:${await simulation.serve()}`;
  const get = (path: string, headers = {}) => fetch(url + path, { headers });
  const metric = async (name: string): Promise<number> => {
    const text = await (await get("/metrics")).text();
    return Number(text.split("\n").find((line) => line.startsWith(name))?.split(" ").at(-1));
  };
  return {
    simulation,
    url,
    exits,
    exited: exited.promise,
    get,
    post: (path, body, headers = {}) =>
      fetch(url + path, {
        method: "POST",
        headers: { "content-type": "application/json", ...headers },
        body: typeof body === "string" ? body : JSON.stringify(body),
      }),
    metric,
    metricWill: async (name, fits) => {
      for (let scrapes = 0; scrapes < SCRAPES_MAX; scrapes += 1) {
        if (fits(await metric(name))) return;
      }
      throw new Error(`${name} stays ${await metric(name)}`);
    },
    [Symbol.asyncDispose]: () => simulation[Symbol.asyncDispose](),
  };
}

/** A chat request's body. */
export function chatCase(options: Record<string, unknown> = {}): Record<string, unknown> {
  return { model: "tiny", messages: [{ role: "user", content: "Weave me a line." }], ...options };
}

/** The data of each event of a stream, as sent. */
export function dataOf(text: string): string[] {
  return text.split("\n\n").filter((event) => event !== "").map((event) =>
    event.replace(/^data: /, "")
  );
}
