/** Runs a program of this machine to its end, for the lab. */

export interface Finished {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

export interface CommandOptions {
  /** Written to its standard input; without it there is none. */
  readonly input?: string | Uint8Array;
  /** Added to this process's environment. */
  readonly env?: Readonly<Record<string, string>>;
  /** It is killed after that; a minute when left out. */
  readonly limitMs?: number;
}

/** Nothing that the lab runs in one command takes longer, unless it says so. */
const LIMIT_MS = 60_000;

/** Runs it, whatever its exit code. Throws when it cannot be started or takes too long. */
export async function attemptCommand(
  argv: readonly string[],
  options: CommandOptions = {},
): Promise<Finished> {
  const [command = "", ...args] = argv;
  const limitMs = options.limitMs ?? LIMIT_MS;
  const child = new Deno.Command(command, {
    args,
    env: { ...options.env },
    stdin: options.input === undefined ? "null" : "piped",
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  let late = false;
  const timer = setTimeout(() => {
    late = true;
    child.kill("SIGKILL");
  }, limitMs);
  try {
    const [output] = await Promise.all([child.output(), feed(child, options.input)]);
    const decoder = new TextDecoder();
    const finished = {
      code: output.code,
      stdout: decoder.decode(output.stdout),
      stderr: decoder.decode(output.stderr),
    };
    if (late) throw new Error(`Not done within ${limitMs} ms: ${describe(argv, finished)}`);
    return finished;
  } finally {
    clearTimeout(timer);
  }
}

/** Runs it and returns what it printed. Throws with its words when its exit code is not 0. */
export async function runCommand(
  argv: readonly string[],
  options: CommandOptions = {},
): Promise<string> {
  const finished = await attemptCommand(argv, options);
  if (finished.code !== 0) {
    throw new Error(`Exit code ${finished.code}: ${describe(argv, finished)}`);
  }
  return finished.stdout;
}

function describe(argv: readonly string[], { stdout, stderr }: Finished): string {
  return `${argv.join(" ")}\n${stdout}${stderr}`.trimEnd();
}

async function feed(child: Deno.ChildProcess, input: string | Uint8Array | undefined) {
  if (input === undefined) return;
  const writer = child.stdin.getWriter();
  try {
    await writer.write(typeof input === "string" ? new TextEncoder().encode(input) : input);
    await writer.close();
  } catch {
    // It ended without reading all: its exit code tells whether that was right.
  }
}
