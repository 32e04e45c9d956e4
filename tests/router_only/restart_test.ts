/**
 * Two routers on one socket that their parent holds, restarted in turn under traffic, as
 * heddle-router.socket with two instances does it. Nothing may be lost.
 */
import { equal, ok } from "node:assert/strict";
import http from "node:http";
import { join } from "node:path";
import { stringify } from "yaml";
import { eventually, freePorts, ROOT, startSim } from "./processes.ts";

/** What systemd does: opens the socket, starts each instance with it, and starts it again. */
const PARENT = String.raw`
use strict; use Socket; use POSIX ();
$^F = 3;
my ($port, $launcher, @states) = @ARGV;
socket(my $s, PF_INET, SOCK_STREAM, 0) or die $!;
setsockopt($s, SOL_SOCKET, SO_REUSEADDR, 1);
bind($s, sockaddr_in($port, inet_aton("127.0.0.1"))) or die $!;
listen($s, 1024) or die $!;
POSIX::dup2(fileno($s), 3);
my %child;
sub start { my $state = shift; my $pid = fork();
  if (!$pid) { $ENV{HEDDLE_STATE} = $state; $ENV{LISTEN_FDS} = 1; $ENV{LISTEN_PID} = $$;
    open(STDERR, ">>", "$state/log"); exec($launcher, "--config", "$state/router.yaml"); }
  $child{$pid} = $state; print "$pid $state\n"; }
$| = 1; my $stop = 0; $SIG{TERM} = sub { $stop = 1; kill "TERM", keys %child; };
start($_) for @states;
while (%child) { my $pid = wait(); last if $pid < 0; my $state = delete $child{$pid};
  print "exit $? $pid\n"; start($state) unless $stop; }
`;

const PERL = "/usr/bin/perl";
const CLIENTS = 16;
const RESTARTS = 4;

Deno.test({
  name: "routers restarted in turn on one socket lose no request",
  ignore: !await exists(PERL),
  async fn() {
    const folder = await Deno.makeTempDir();
    const [enginePort = 0, port = 0, ...admins] = freePorts(4);
    try {
      await using engine = await startSim({
        port: enginePort,
        args: ["--sim-decode-tokens-per-s", "400"],
      });
      const states = await Promise.all(
        admins.map((admin, index) => layState(join(folder, `${index}`), engine.url, admin)),
      );
      await using parent = startParent(port, states);
      for (const admin of admins) await ready(admin);
      const traffic = new Traffic(port);
      for (let restart = 0; restart < RESTARTS; restart++) {
        const index = restart % 2;
        const state = states[index] ?? "";
        const old = parent.pidOf(state);
        await traffic.more(100);
        Deno.kill(old, "SIGTERM");
        await eventually(
          "a new instance",
          () => Promise.resolve(parent.pidOf(state) !== old || undefined),
          30_000,
        );
        await ready(admins[index] ?? 0);
        await traffic.more(100);
      }
      await traffic.stop();
      equal(traffic.failures.join("\n"), "");
      ok(traffic.served > RESTARTS * 200, `${traffic.served}`);
      ok(parent.exits().every((line) => line.startsWith("exit 0 ")), parent.exits().join());
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  },
});

async function exists(path: string): Promise<boolean> {
  return await Deno.stat(path).then(() => true, () => false);
}

async function layState(state: string, engine: string, admin: number): Promise<string> {
  await Deno.mkdir(state);
  await Deno.writeTextFile(
    join(state, "router.yaml"),
    stringify({
      // The socket that is handed over counts instead.
      listen: "127.0.0.1:1",
      admin: { listen: `127.0.0.1:${admin}` },
      state_directory: state,
      endpoints: [{ name: "sim", url: engine, models: [{ name: "m", served_name: "served" }] }],
    }),
  );
  return state;
}

interface Parent extends AsyncDisposable {
  pidOf(state: string): number;
  exits(): string[];
}

function startParent(port: number, states: readonly string[]): Parent {
  const child = new Deno.Command(PERL, {
    args: ["-e", PARENT, String(port), join(ROOT, "bin/heddle-router"), ...states],
    env: { HEDDLE_DENO: Deno.execPath() },
    stdin: "null",
    stdout: "piped",
    stderr: "inherit",
  }).spawn();
  const lines: string[] = [];
  const reading = (async () => {
    let rest = "";
    const decoder = new TextDecoder();
    for await (const part of child.stdout) {
      const all = (rest + decoder.decode(part, { stream: true })).split("\n");
      rest = all.pop() ?? "";
      lines.push(...all);
    }
  })();
  return {
    pidOf: (state) =>
      Number(lines.filter((line) => line.endsWith(` ${state}`)).at(-1)?.split(" ")[0] ?? 0),
    exits: () => lines.filter((line) => line.startsWith("exit ")),
    async [Symbol.asyncDispose]() {
      child.kill("SIGTERM");
      await Promise.all([child.status, reading]);
    },
  };
}

async function ready(admin: number): Promise<void> {
  await eventually("ready", async () => {
    try {
      const response = await fetch(`http://127.0.0.1:${admin}/ready`);
      await response.body?.cancel();
      return response.ok || undefined;
    } catch {
      return undefined;
    }
  }, 30_000);
}

/** Clients that keep their connections and never try again, half of them streaming. */
class Traffic {
  readonly failures: string[] = [];
  served = 0;
  #stopped = false;
  #waiters: { served: number; resolve: () => void }[] = [];
  readonly #agent = new http.Agent({ keepAlive: true, maxSockets: CLIENTS });
  readonly #clients: Promise<void[]>;

  constructor(port: number) {
    this.#clients = Promise.all(
      Array.from({ length: CLIENTS }, async (_, client) => {
        while (!this.#stopped) await this.#one(port, client % 2 === 0);
      }),
    );
  }

  /** Resolves once so many more requests were served. */
  more(count: number): Promise<void> {
    return new Promise((resolve) => this.#waiters.push({ served: this.served + count, resolve }));
  }

  async stop(): Promise<void> {
    this.#stopped = true;
    await this.#clients;
    this.#agent.destroy();
  }

  #one(port: number, stream: boolean): Promise<void> {
    const body = JSON.stringify({ model: "m", prompt: "count", max_tokens: 8, stream });
    return new Promise((resolve) => {
      const fail = (why: string) => {
        this.failures.push(why);
        resolve();
      };
      const request = http.request({
        host: "127.0.0.1",
        port,
        path: "/v1/completions",
        method: "POST",
        agent: this.#agent,
        headers: { "content-type": "application/json", "content-length": body.length },
      }, (response) => {
        let text = "";
        response.on("data", (part) => text += part);
        response.on("error", (error: Error) => fail(`response: ${error.message}`));
        response.on("end", () => {
          const whole = !stream || text.endsWith("data: [DONE]\n\n");
          if (response.statusCode !== 200 || !whole) return fail(`${response.statusCode} ${text}`);
          this.#count();
          resolve();
        });
      });
      request.on("error", (error: Error) => fail(`request: ${error.message}`));
      request.end(body);
    });
  }

  #count(): void {
    this.served++;
    this.#waiters = this.#waiters.filter(({ served, resolve }) => {
      if (this.served < served) return true;
      resolve();
      return false;
    });
  }
}
