/** A program of the bench: started, watched from outside, and stopped by its pid. */

/** What one process has used so far. */
export interface Cost {
  readonly cpuMs: number;
  readonly memoryMib: number;
}

export interface BenchProcess extends AsyncDisposable {
  readonly pid: number;
  cost(): Promise<Cost>;
  /** Open file descriptors. */
  descriptors(): Promise<number>;
}

export interface ProcessOptions {
  readonly command: string;
  readonly args: readonly string[];
  readonly env?: Record<string, string>;
  readonly port: number;
  readonly readyMs?: number;
}

/** Clock ticks of the kernel's accounting, per second: 100 on every Linux that Deno runs on. */
const TICKS_PER_SECOND = 100;
const PAGE_BYTES = 4_096;
const READY_MS = 60_000;
const POLL_MS = 100;

/** Starts a program and waits until `port` takes connections. Throws with its output when it does not. */
export async function startProcess(options: ProcessOptions): Promise<BenchProcess> {
  const child = new Deno.Command(options.command, {
    args: [...options.args],
    env: options.env ?? {},
    stdin: "null",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  let output = "";
  const reading = Promise.all([child.stdout, child.stderr].map(async (stream) => {
    const decoder = new TextDecoder();
    for await (const part of stream) {
      output = (output + decoder.decode(part, { stream: true })).slice(-4_000);
    }
  }));
  let ended = false;
  const exited = child.status.then(() => {
    ended = true;
  });
  const stop = async (): Promise<void> => {
    if (!ended) child.kill("SIGTERM");
    const forced = setTimeout(() => ended || child.kill("SIGKILL"), 5_000);
    await Promise.all([exited, reading]);
    clearTimeout(forced);
  };
  const deadline = performance.now() + (options.readyMs ?? READY_MS);
  while (!await listens(options.port)) {
    if (ended || performance.now() > deadline) {
      await stop();
      throw new Error(`${options.command} did not come up:\n${output}`);
    }
    await new Promise((resolve) => setTimeout(resolve, POLL_MS));
  }
  return {
    pid: child.pid,
    cost: () => costOf(child.pid),
    async descriptors() {
      return (await textOf("/bin/ls", [`/proc/${child.pid}/fd`])).trim().split("\n").length;
    },
    [Symbol.asyncDispose]: stop,
  };
}

async function costOf(pid: number): Promise<Cost> {
  const stat = await textOf("/bin/cat", [`/proc/${pid}/stat`]);
  // The name in parentheses may hold spaces.
  const fields = stat.slice(stat.lastIndexOf(")") + 2).split(" ");
  const ticks = Number(fields[11]) + Number(fields[12]);
  return {
    cpuMs: ticks * 1_000 / TICKS_PER_SECOND,
    memoryMib: Number(fields[21]) * PAGE_BYTES / 2 ** 20,
  };
}

async function textOf(command: string, args: string[]): Promise<string> {
  const { stdout } = await new Deno.Command(command, { args, stderr: "null" }).output();
  return new TextDecoder().decode(stdout);
}

async function listens(port: number): Promise<boolean> {
  try {
    (await Deno.connect({ hostname: "127.0.0.1", port })).close();
    return true;
  } catch {
    return false;
  }
}

/** A port that was free a moment ago. */
export function freePort(): number {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  return listener.addr.transport === "tcp" ? listener.addr.port : 0;
}
