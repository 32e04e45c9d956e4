/**
 * `deno task bench:tenancy [KEYS]`: what keys, limits and the ledger cost a router. Taking all keys in
 * control's chunks, each decoded, applied and put down for the disk: the longest of these is the
 * longest time in which a request has to wait. Then requests of keys chosen at random: authenticated,
 * held against four limits on three scopes, settled, and recorded. At the end the same router's whole
 * work for a request without all that, as a process in front of an engine, so that there is a share.
 */
import process from "node:process";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { apiKeyFrom, apiKeyHash } from "@heddle/common/api_key";
import { WatchResponseSchema } from "@heddle/proto/gen/router";
import { BudgetPeriod, ScopeKind } from "@heddle/proto/gen/tenancy";
import { configSchema } from "../../../router/config.ts";
import { bookKeyring } from "../../../router/edge/client/keys.ts";
import { linesOf } from "../../../router/edge/ledger/ledger_file.ts";
import { encodeRecord } from "../../../router/edge/ledger/encode_record.ts";
import { settingsOf } from "../../../router/settings/settings.ts";
import { Tenancy } from "../../../router/tenancy/tenancy.ts";
import { run as runLoad } from "../router/client.ts";
import { withHeddle } from "../router/stage.ts";
import { BASIC, RECORD } from "./request.ts";

const KEYS = 100_000;
const CHUNK = 1_000;
const REQUESTS = 20_000;
const PROJECTS = 100;

function secretOf(n: number): string {
  const bytes = new Uint8Array(32);
  new DataView(bytes.buffer).setUint32(0, n);
  bytes[31] = 1;
  return apiKeyFrom(bytes);
}

/** Control's snapshot as it goes over the wire, a thousand keys in a message. */
function* snapshot(keys: number): Generator<Uint8Array> {
  const encoded = (fields: Parameters<typeof create<typeof WatchResponseSchema>>[1]) =>
    toBinary(
      WatchResponseSchema,
      create(WatchResponseSchema, { ...fields, snapshot: true }),
    );
  for (let from = 0; from < keys; from += CHUNK) {
    const numbers = Array.from({ length: Math.min(CHUNK, keys - from) }, (_, n) => from + n);
    yield encoded({
      keys: numbers.map((n) => {
        const secret = secretOf(n);
        const project = `project-${n % PROJECTS}`;
        return {
          id: `key-${n}`,
          name: `key ${n}`,
          secrets: [{ sha256: apiKeyHash(secret), prefix: secret.slice(0, 16) }],
          scopeIds: ["org", project, `key-${n}`],
          organisation: "acme",
          project,
          projectId: project,
          models: { items: ["m", "other"] },
        };
      }),
    });
    yield encoded({
      scopes: numbers.map((n) => ({
        id: `key-${n}`,
        kind: ScopeKind.KEY,
        name: `key ${n}`,
        limits: { requestsPerMinute: 6_000n, tokensPerMinute: 1_000_000n },
      })),
    });
  }
  yield encoded({
    scopes: [{
      id: "org",
      kind: ScopeKind.ORGANISATION,
      name: "acme",
      limits: {
        concurrentRequests: 10_000,
        budgetMicro: 1_000_000_000_000n,
        budgetPeriod: BudgetPeriod.MONTH,
      },
    }],
    snapshotEnd: true,
  });
}

/** Nearest-rank percentile. */
function percentile(sorted: readonly number[], share: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))] ?? 0;
}

async function main(keys: number): Promise<void> {
  const folder = await Deno.makeTempDir();
  try {
    const tenancy = new Tenancy(
      settingsOf(
        configSchema.parse({
          state_directory: folder,
          control: { urls: ["http://127.0.0.1:1"] },
          keys: { policy: "control" },
        }),
        "bench",
      ),
      { name: "bench/1", instance: "bench" },
      () => performance.now(),
    );
    const messages = [...snapshot(keys)];
    const turns: number[] = [];
    const before = cpuMs();
    const late = lateness();
    for (const message of messages) {
      const from = performance.now();
      tenancy.apply(fromBinary(WatchResponseSchema, message));
      turns.push(performance.now() - from);
      await new Promise((resolve) => setTimeout(resolve, 0));
    }
    const cpu = cpuMs() - before;
    const sum = turns.reduce((a, b) => a + b, 0);
    turns.sort((a, b) => a - b);
    say(
      `${tenancy.book.keys} keys taken in ${turns.length} messages: ${sum.toFixed(0)} ms in all ` +
        `(${cpu.toFixed(0)} ms of CPU, other threads included), p50 ${
          percentile(turns, 0.5).toFixed(1)
        } ms, longest ${turns.at(-1)?.toFixed(1)} ms; longest pause of the event loop ` +
        `${late.stop().toFixed(1)} ms`,
    );
    // The first round pays for collecting what taking the keys has left behind.
    messages.length = 0;
    let own = 0;
    for (const round of ["just after", "later"]) {
      const { cpuUs, words } = await requests(tenancy, keys);
      own = cpuUs;
      say(`${round}: ${words}`);
    }
    await tenancy.stop();
    const rest = await routerCpuUs();
    say(
      `a whole answer of 1 KB through a router without keys: ${
        rest.toFixed(0)
      } µs of CPU; with them ` +
        `they are ${(100 * own / (own + rest)).toFixed(0)} % of a request's cost in the router`,
    );
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

async function requests(
  tenancy: Tenancy,
  keys: number,
): Promise<{ readonly cpuUs: number; readonly words: string }> {
  // Alone: asking control for shares costs a call a second, not one for each request.
  tenancy.limiter.share({ kind: "alone" });
  const keyring = bookKeyring(tenancy.book, tenancy.trust);
  const secrets = Array.from({ length: 1_000 }, (_, n) => secretOf((n * 7_919) % keys));
  const gone = new AbortController().signal;
  const before = cpuMs();
  const parts = { authenticate: 0, limit: 0, settle: 0, account: 0 };
  const entries = [];
  for (let n = 0; n < REQUESTS; n++) {
    const headers = { authorization: [`Bearer ${secrets[n % secrets.length]}`] };
    const a = performance.now();
    const caller = keyring.authenticate(headers, { address: "10.0.0.1", path: "/v1/x" });
    if (caller.kind === "end") throw new Error(caller.outcome.reason);
    const b = performance.now();
    const reserved = await tenancy.limits.reserve({ caller: caller.value, ...BASIC }, gone);
    if (reserved.kind === "end") throw new Error(reserved.outcome.reason);
    tenancy.limits.headers(caller.value);
    const c = performance.now();
    const usage = { promptTokens: 200, completionTokens: 100 };
    const costMicro = reserved.value.settle({
      model: "m",
      usage,
      estimated: false,
      engineMs: 100,
      gpus: 1,
    });
    reserved.value[Symbol.dispose]();
    const d = performance.now();
    const { key } = caller.value;
    const record = encodeRecord({ ...RECORD, key, costMicro, caller: caller.value.id, usage });
    entries.push({ record, endedAtMs: 0 });
    // As the ledger does ten times a second, of a router with a thousand requests a second.
    if (entries.length === 100) linesOf(entries.splice(0));
    const e = performance.now();
    parts.authenticate += b - a;
    parts.limit += c - b;
    parts.settle += d - c;
    parts.account += e - d;
  }
  const each = Object.entries(parts).map(([name, ms]) => [name, ms * 1_000 / REQUESTS] as const);
  const all = each.reduce((sum, [, us]) => sum + us, 0);
  const cpu = (cpuMs() - before) * 1_000 / REQUESTS;
  const words =
    `${REQUESTS} requests, ${cpu.toFixed(1)} µs of CPU each; ${all.toFixed(1)} µs on the clock (` +
    `${each.map(([name, us]) => `${name} ${us.toFixed(1)}`).join(", ")})`;
  return { cpuUs: cpu, words };
}

/** CPU of a router process for one request, in µs: whole answers, sixteen at a time. */
async function routerCpuUs(): Promise<number> {
  let found = Number.NaN;
  await withHeddle(async ({ router }) => {
    const body = JSON.stringify({
      model: "m",
      messages: [{ role: "user", content: "word ".repeat(200) }],
    });
    const load = { target: router.target, connections: 16, body };
    await runLoad({ ...load, seconds: 3 });
    const before = await router.process.cost();
    const { whole } = await runLoad({ ...load, seconds: 5 });
    found = ((await router.process.cost()).cpuMs - before.cpuMs) * 1_000 / whole.length;
  });
  return found;
}

/** How late a timer of every millisecond comes, at the worst, until it is stopped: in ms. */
function lateness(): { stop(): number } {
  let worst = 0;
  let last = performance.now();
  const timer = setInterval(() => {
    const now = performance.now();
    worst = Math.max(worst, now - last - 1);
    last = now;
  }, 1);
  return {
    stop: () => {
      clearInterval(timer);
      return worst;
    },
  };
}

/** Of all threads; on a machine that has other work, the time on the clock says little. */
function cpuMs(): number {
  const { user, system } = process.cpuUsage();
  return (user + system) / 1_000;
}

function say(line: string): void {
  Deno.stdout.writeSync(new TextEncoder().encode(`${line}\n`));
}

if (import.meta.main) await main(Number(Deno.args[0] ?? KEYS));
