/** heddle-sim as a process of its own, under its own permissions. */
import { createServer } from "node:net";

const PROGRAM = new URL("../bin/heddle-sim", import.meta.url).pathname;
const DEADLINE_MS = 30_000;

export interface SimProcess extends AsyncDisposable {
  readonly pid: number;
  /** Resolves to the first line that matches. Rejects when the process ends without one. */
  line(pattern: RegExp): Promise<string>;
  /** Where it serves, once it does. */
  url(): Promise<string>;
  signal(name: Deno.Signal): void;
  readonly ended: Promise<{ readonly code: number; readonly output: string }>;
}

/** Starts `heddle-sim ARGS`. It is killed when the test is over, or when it takes too long. */
export function startProcess(
  args: readonly string[],
  env: Readonly<Record<string, string>> = {},
): SimProcess {
  const child = new Deno.Command(PROGRAM, {
    args: [...args],
    env: { HEDDLE_DENO: Deno.execPath(), ...env },
    stdout: "piped",
    stderr: "piped",
  }).spawn();
  const output = new Output();
  const reading = Promise.all([output.read(child.stdout), output.read(child.stderr)]);
  const deadline = setTimeout(() => child.kill("SIGKILL"), DEADLINE_MS);
  const ended = (async () => {
    const status = await child.status;
    await reading;
    clearTimeout(deadline);
    output.end();
    return { code: status.code, output: output.text };
  })();
  return {
    pid: child.pid,
    line: (pattern) => output.line(pattern),
    url: async () => {
      const line = await output.line(/startup complete/);
      return line.slice(line.indexOf("http://")).trim();
    },
    signal: (name) => child.kill(name),
    ended,
    [Symbol.asyncDispose]: async () => {
      try {
        child.kill("SIGKILL");
      } catch {
        // It has ended already.
      }
      await ended;
    },
  };
}

class Output {
  text = "";
  #ended = false;
  readonly #waiting = new Set<() => void>();

  async read(stream: ReadableStream<Uint8Array<ArrayBuffer>>): Promise<void> {
    for await (const chunk of stream.pipeThrough(new TextDecoderStream())) {
      this.text += chunk;
      for (const look of [...this.#waiting]) look();
    }
  }

  end(): void {
    this.#ended = true;
    for (const look of [...this.#waiting]) look();
  }

  line(pattern: RegExp): Promise<string> {
    const { promise, resolve, reject } = Promise.withResolvers<string>();
    const look = (): void => {
      const complete = this.text.slice(0, this.text.lastIndexOf("\n") + 1);
      const found = complete.split("\n").find((line) => pattern.test(line));
      if (found === undefined && !this.#ended) return;
      this.#waiting.delete(look);
      if (found !== undefined) resolve(found);
      else reject(new Error(`no line matches ${pattern}:\n${this.text}`));
    };
    this.#waiting.add(look);
    look();
    return promise;
  }
}

/** A port that was free a moment ago. */
export function freePort(): Promise<number> {
  const { promise, resolve } = Promise.withResolvers<number>();
  const server = createServer().listen({ host: "127.0.0.1", port: 0 }, () => {
    const address = server.address();
    const port = typeof address === "object" && address !== null ? address.port : 0;
    server.close(() => resolve(port));
  });
  return promise;
}
