/** A router and simulated engines as processes, each under its own permission set, without control. */
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { stringify } from "yaml";

export const ROOT = fileURLToPath(new URL("../..", import.meta.url)).replace(/\/$/, "");
/** From start to answering, on a slow and busy machine. */
const READY_MS_MAX = 60_000;
const POLL_MS = 50;

export interface RunningProcess extends AsyncDisposable {
  readonly url: string;
  readonly pid: number;
  /** What it wrote on standard error so far. */
  readonly log: () => string;
  readonly exited: Promise<number>;
  signal(signal: Deno.Signal): void;
}

/** Ports that were free a moment ago, all different. */
export function freePorts(count: number): number[] {
  const listeners = Array.from(
    { length: count },
    () => Deno.listen({ hostname: "127.0.0.1", port: 0 }),
  );
  return listeners.map((listener) => {
    const { addr } = listener;
    listener.close();
    if (addr.transport !== "tcp") throw new Error("not TCP");
    return addr.port;
  });
}

export interface SimOptions {
  readonly port: number;
  readonly args?: readonly string[];
  readonly key?: string;
}

/** A simulated engine that serves the model "served". */
export async function startSim({ port, args = [], key }: SimOptions): Promise<RunningProcess> {
  const all = ["serve", "served", "--host", "127.0.0.1", "--port", String(port), ...args];
  const env: Record<string, string> = key === undefined ? {} : { VLLM_API_KEY: key };
  return await startProgram("heddle-sim", all, {
    url: `http://127.0.0.1:${port}`,
    probe: `http://127.0.0.1:${port}/health`,
    env,
  });
}

/** A router whose whole world is `state`. */
export async function startRouter(
  state: string,
  config: Record<string, unknown> & { readonly admin?: Record<string, unknown> },
  env: Record<string, string> = {},
): Promise<RunningProcess & { readonly admin: string }> {
  const [port = 0, admin = 0] = freePorts(2);
  const file = join(state, "router.yaml");
  await Deno.writeTextFile(
    file,
    stringify({
      listen: `127.0.0.1:${port}`,
      state_directory: state,
      ...config,
      admin: { listen: `127.0.0.1:${admin}`, ...config["admin"] },
    }),
  );
  const process = await startProgram("heddle-router", ["--config", file], {
    url: `http://127.0.0.1:${port}`,
    probe: `http://127.0.0.1:${port}/ready`,
    env: { HEDDLE_STATE: state, ...env },
  });
  return { ...process, admin: `http://127.0.0.1:${admin}` };
}

/** Starts a program by its launcher and waits until `probe` answers well. */
export async function startProgram(
  launcher: string,
  args: readonly string[],
  options: { url: string; probe: string; env: Record<string, string> },
): Promise<RunningProcess> {
  const child = new Deno.Command(join(ROOT, "bin", launcher), {
    args: [...args],
    env: { HEDDLE_DENO: Deno.execPath(), ...options.env },
    stdin: "null",
    stdout: "null",
    stderr: "piped",
  }).spawn();
  let log = "";
  const reading = (async () => {
    const decoder = new TextDecoder();
    for await (const part of child.stderr) log += decoder.decode(part, { stream: true });
  })();
  let code: number | undefined;
  const exited = child.status.then((status) => code = status.code);
  const deadline = performance.now() + READY_MS_MAX;
  while (!await answers(options.probe)) {
    if (code !== undefined || performance.now() > deadline) {
      if (code === undefined) child.kill("SIGKILL");
      await Promise.all([exited, reading]);
      throw new Error(`${launcher} did not come up (${code}):\n${log}`);
    }
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
  return {
    url: options.url,
    pid: child.pid,
    log: () => log,
    exited,
    signal: (signal) => child.kill(signal),
    async [Symbol.asyncDispose]() {
      if (code === undefined) child.kill("SIGKILL");
      await Promise.all([exited, reading]);
    },
  };
}

async function answers(url: string): Promise<boolean> {
  try {
    const response = await fetch(url);
    await response.body?.cancel();
    return response.ok;
  } catch {
    return false;
  }
}

/** Sum of a metric's lines that begin with `name`. */
export async function metricOf(url: string, name: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text();
  return text.split("\n").filter((line) => line.startsWith(name))
    .reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" ") + 1)), 0);
}

/** Waits until `look` gives a value. */
export async function eventually<T>(
  what: string,
  look: () => Promise<T | undefined>,
  limitMs: number,
): Promise<T> {
  const deadline = performance.now() + limitMs;
  for (;;) {
    const found = await look();
    if (found !== undefined) return found;
    if (performance.now() > deadline) throw new Error(`Not within ${limitMs} ms: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
}
