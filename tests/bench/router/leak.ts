/**
 * `deno run -P=test tests/bench/router/leak.ts [COUNT]`: 100,000 requests that end in every way, and
 * what is left of them after each tenth: sockets, counters, memory as the system sees it. Exits with
 * 1 when something is.
 */
import { Buffer } from "node:buffer";
import { connect } from "node:net";
import { say } from "../../../tools/say.ts";
import { type Stage, withHeddle } from "./stage.ts";

const COUNT = Number(Deno.args[0] ?? 100_000);
const WORKERS = 32;
const ROUNDS = 10;
/** Heaps and pools have their size after so many rounds; growth counts from there. */
const WARM_ROUNDS = 2;
/**
 * Past this the memory grows with the number of requests. The runtime gives memory back when it
 * likes, so that one look may find twice as much as the next: the smallest of several is compared.
 */
const GROWTH_MIB_MAX = 48;
/** Connections to engines are kept 4 s, and file descriptors with them. */
const SETTLE_MS = 8_000;

interface Ending {
  readonly name: string;
  readonly body: string;
  /** The client leaves after so long. */
  readonly leaveMs?: number;
}

const CHAT = { model: "m", messages: [{ role: "user", content: "word ".repeat(50) }] };
const body = (more: Record<string, unknown>) => JSON.stringify({ ...more, ...CHAT });

const ENDINGS: readonly Ending[] = [
  { name: "whole", body: body({}) },
  { name: "stream", body: body({ stream: true, bench_events: 3, bench_gap_ms: 1 }) },
  { name: "left in the stream", body: body({ stream: true, bench_gap_ms: 5 }), leaveMs: 12 },
  { name: "left before the first byte", body: body({ bench_hang: true }), leaveMs: 5 },
  { name: "left at once", body: body({}), leaveMs: 0 },
  { name: "cut by the engine", body: body({ bench_cut: true }) },
  { name: "no JSON", body: '{"model":' },
  { name: "no such model", body: '{"model":"nope"}' },
];

if (import.meta.main) {
  await withHeddle(async (stage) => {
    const looks: Look[] = [];
    for (let round = 1; round <= ROUNDS; round++) {
      await drive(stage, COUNT / ROUNDS);
      const seen = await look(stage);
      say(`After ${COUNT / ROUNDS * round} requests: ${told(seen)}`);
      if (round > WARM_ROUNDS) looks.push(seen);
    }
    const fine = nothingLeft(looks);
    say(fine ? "Nothing is left." : "Something is left.");
    if (!fine) Deno.exitCode = 1;
  });
}

/** Whether the second half of `looks` shows no more than the first, within what a runtime varies. */
function nothingLeft(looks: readonly Look[]): boolean {
  const [early, late] = [looks.slice(0, looks.length / 2), looks.slice(looks.length / 2)];
  const least = (half: readonly Look[], of: (look: Look) => number) => Math.min(...half.map(of));
  const grown = least(late, (look) => look.memoryMib) - least(early, (look) => look.memoryMib);
  const descriptors = least(late, (look) => look.descriptors) -
    least(early, (look) => look.descriptors);
  say(`Between the halves after ${WARM_ROUNDS} rounds: ${grown.toFixed(0)} MiB.`);
  return grown < GROWTH_MIB_MAX && descriptors <= 4 &&
    looks.every((look) => look.inFlight + look.replicaInFlight + look.busy === 0);
}

interface Look {
  readonly descriptors: number;
  readonly memoryMib: number;
  readonly inFlight: number;
  readonly replicaInFlight: number;
  readonly busy: number;
}

async function look({ router, metric }: Stage): Promise<Look> {
  await new Promise((resolve) => setTimeout(resolve, SETTLE_MS));
  return {
    descriptors: await router.process.descriptors(),
    memoryMib: (await router.process.cost()).memoryMib,
    inFlight: await metric("heddle_router_requests_in_flight"),
    replicaInFlight: await metric("heddle_router_replica_in_flight"),
    busy: await metric('heddle_router_engine_connections{state="busy"}'),
  };
}

function told({ descriptors, memoryMib, inFlight, replicaInFlight, busy }: Look): string {
  return `${descriptors} descriptors, ${memoryMib.toFixed(0)} MiB, ${inFlight} in flight, ` +
    `${replicaInFlight} at replicas, ${busy} connections busy`;
}

async function drive({ router }: Stage, count: number): Promise<void> {
  let left = count;
  await Promise.all(Array.from({ length: WORKERS }, async (_, worker) => {
    for (let n = worker; left > 0; n++) {
      left--;
      const ending = ENDINGS[n % ENDINGS.length];
      if (ending !== undefined) await request(router.target.port, ending);
    }
  }));
}

/** One request on a connection of its own; resolves when the connection is closed. */
function request(port: number, { body, leaveMs }: Ending): Promise<void> {
  return new Promise((resolve) => {
    const socket = connect({ host: "127.0.0.1", port });
    let timer: ReturnType<typeof setTimeout> | undefined;
    socket.on("connect", () => {
      socket.write(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nconnection: close\r\n" +
          `content-type: application/json\r\ncontent-length: ${Buffer.byteLength(body)}\r\n\r\n` +
          body,
      );
      if (leaveMs !== undefined) timer = setTimeout(() => socket.destroy(), leaveMs);
    });
    socket.on("error", () => {});
    socket.on("close", () => {
      clearTimeout(timer);
      resolve();
    });
    socket.resume();
  });
}
