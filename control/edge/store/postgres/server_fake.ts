/**
 * A real PostgreSQL on loopback for tests, from the binaries of the machine: a fresh cluster on a
 * free port, gone with its folder. initdb refuses to run as root, so root lends it another user.
 */
import type { PostgresSettings } from "./session.ts";

const FOLDERS = [
  "/usr/lib/postgresql/15/bin",
  "/usr/lib/postgresql/16/bin",
  "/usr/lib/postgresql/17/bin",
];

/** Longest wait until a new server answers. */
const START_MS_MAX = 30_000;
const POLL_MS = 50;

/** Where the binaries are; undefined where there are none, and then tests say so and are ignored. */
export function postgresBinaries(): string | undefined {
  return FOLDERS.find((folder) => {
    try {
      return Deno.statSync(`${folder}/initdb`).isFile;
    } catch {
      return false;
    }
  });
}

/** What to say of a test that cannot run here. */
export const NO_POSTGRES = "apt-get install postgresql makes this test run";

export class PostgresServer implements AsyncDisposable {
  readonly port: number;
  readonly #folder: string;
  readonly #binaries: string;
  #process: Deno.ChildProcess | undefined;
  #frozen: number[] = [];
  readonly #tls: boolean;
  readonly #address: string;

  private constructor(
    where: { folder: string; binaries: string; port: number; tls: boolean; address: string },
  ) {
    this.#address = where.address;
    this.#folder = where.folder;
    this.#binaries = where.binaries;
    this.port = where.port;
    this.#tls = where.tls;
  }

  /**
   * Makes a cluster and starts it. With `tls`, its certificate and key as PEM. With `beyond`, it also
   * serves that network, on that address.
   */
  static async start(
    options: {
      tls?: { cert: string; key: string };
      password?: string;
      beyond?: { address: string; network: string };
    } = {},
  ): Promise<PostgresServer> {
    const binaries = postgresBinaries();
    if (binaries === undefined) throw new Error("PostgreSQL is not installed");
    const folder = await Deno.makeTempDir({ prefix: "heddle-postgres-" });
    const port = freePort();
    const server = new PostgresServer({
      folder,
      binaries,
      port,
      tls: options.tls !== undefined,
      address: options.beyond?.address ?? "127.0.0.1",
    });
    await server.#initialise(options);
    if (options.beyond !== undefined) {
      const line = `hostssl all all ${options.beyond.network} scram-sha-256\n`;
      await Deno.writeTextFile(`${folder}/data/pg_hba.conf`, line, { append: true });
    }
    await server.resume();
    return server;
  }

  /** How control reaches it. */
  get settings(): PostgresSettings {
    return {
      address: { host: "127.0.0.1", port: this.port },
      database: "postgres",
      user: "heddle",
      password: undefined,
      ca: undefined,
    };
  }

  /** Starts it again after `kill`, with what it held. */
  async resume(): Promise<void> {
    const args = [
      ["-D", `${this.#folder}/data`],
      ["-p", `${this.port}`],
      ["-k", this.#folder],
      ["-c", `listen_addresses=${this.#address}`],
      // What it writes matters to nobody after the test.
      ["-c", "fsync=off"],
      ...(this.#tls
        ? [
          ["-c", "ssl=on"],
          ["-c", `ssl_cert_file=${this.#folder}/cert.pem`],
          ["-c", `ssl_key_file=${this.#folder}/key.pem`],
        ]
        : []),
    ].flat();
    const [command, rest] = asServer(`${this.#binaries}/postgres`, args);
    this.#process = new Deno.Command(command, { args: rest, ...QUIET }).spawn();
    const deadline = performance.now() + START_MS_MAX;
    while (!await this.#answers()) {
      if (performance.now() > deadline) throw new Error("PostgreSQL did not start in time");
      await new Promise((tick) => setTimeout(tick, POLL_MS));
    }
  }

  /** Ends it at once, as a crash does: open connections are cut. */
  async kill(): Promise<void> {
    this.thaw();
    const process = this.#process;
    this.#process = undefined;
    // SIGQUIT is an immediate shutdown; SIGKILL would leave its children behind.
    process?.kill("SIGQUIT");
    await process?.status;
  }

  /** Stands still, with every connection open and nobody answering. */
  async freeze(): Promise<void> {
    const pid = this.#process?.pid;
    if (pid === undefined) throw new Error("PostgreSQL does not run");
    Deno.kill(pid, "SIGSTOP");
    this.#frozen = [pid];
    // It answers from children of its own.
    const { stdout } = await new Deno.Command("ps", { args: ["-o", "pid=", "--ppid", `${pid}`] })
      .output();
    for (const child of new TextDecoder().decode(stdout).split(/\s+/).filter((id) => id !== "")) {
      Deno.kill(Number(child), "SIGSTOP");
      this.#frozen.push(Number(child));
    }
  }

  /** Goes on. */
  thaw(): void {
    for (const pid of this.#frozen.splice(0)) Deno.kill(pid, "SIGCONT");
  }

  async #answers(): Promise<boolean> {
    const args = ["-q", "-h", this.#address, "-p", `${this.port}`];
    return (await new Deno.Command(`${this.#binaries}/pg_isready`, { args }).output()).success;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.kill();
    await Deno.remove(this.#folder, { recursive: true });
  }

  async #initialise(
    options: { tls?: { cert: string; key: string }; password?: string },
  ): Promise<void> {
    const { tls, password } = options;
    if (tls !== undefined) {
      await Deno.writeTextFile(`${this.#folder}/cert.pem`, tls.cert);
      await Deno.writeTextFile(`${this.#folder}/key.pem`, tls.key, { mode: 0o600 });
    }
    if (password !== undefined) await Deno.writeTextFile(`${this.#folder}/password`, password);
    if (isRoot()) await run("chown", ["-R", SERVER_USER, this.#folder]);
    await run(
      ...asServer(
        `${this.#binaries}/initdb`,
        [
          ["-D", `${this.#folder}/data`],
          ["-U", "heddle"],
          ["--no-sync"],
          ["--no-locale", "--encoding=UTF8"],
          password === undefined
            ? ["--auth=trust"]
            : ["--auth=scram-sha-256", `--pwfile=${this.#folder}/password`],
        ].flat(),
      ),
    );
  }
}

/** Root runs the server as somebody without rights; it ends with the test that started it. */
const SERVER_USER = "nobody";
const QUIET = { stdin: "null", stdout: "null", stderr: "null" } as const;

function isRoot(): boolean {
  return Deno.uid() === 0;
}

function asServer(program: string, args: readonly string[]): [string, string[]] {
  const user = isRoot() ? ["--reuid", SERVER_USER, "--regid", "nogroup", "--clear-groups"] : [];
  return ["setpriv", [...user, "--pdeathsig", "SIGQUIT", program, ...args]];
}

async function run(command: string, args: readonly string[]): Promise<void> {
  const output = await new Deno.Command(command, { args: [...args], stdin: "null" }).output();
  if (output.success) return;
  throw new Error(`${command} failed: ${new TextDecoder().decode(output.stderr)}`);
}

function freePort(): number {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  return listener.addr.port;
}
