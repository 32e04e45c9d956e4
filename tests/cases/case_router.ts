/** A router of its own for one case, wired as the program wires it, with its books in the open. */
import { Registry } from "prom-client";
import { configSchema } from "../../router/config.ts";
import { settingsOf } from "../../router/settings/settings.ts";
import type { UsageRecord } from "../../router/core/request/usage_record.ts";
import { startRouter } from "../../router/router.ts";
import { caseKey, type KeyWish, startCaseControl } from "./case_keys.ts";
import type { Case } from "./case_schema.ts";

export interface RouterUnderTest extends AsyncDisposable {
  readonly port: number;
  readonly records: readonly UsageRecord[];
  /** Resolves at the next record. */
  recorded(): Promise<void>;
  failedTries(): Promise<number>;
  inFlight(): Promise<number>;
  /** Tokens that requests in flight have reserved. */
  readonly reservedTokens: () => Promise<number>;
  /** The key that KEY, KEY1 or KEY2 stands for. */
  readonly keyOf: (name: string) => string;
}

export interface RouterSetup {
  readonly replicas: readonly { readonly name: string; readonly port: number }[];
  /** Models that every replica serves. */
  readonly models: readonly string[];
  readonly declared: Case["setup"]["models"];
  /** What the case's keys are allowed; nothing of it: keys of a file, which are allowed all. */
  readonly key: KeyWish;
  /** An engine says nothing for ever, which is not waited for. */
  readonly hangs: boolean;
}

/** What KEY, KEY1 and KEY2 stand for where keys come from a file: themselves. */
const KEYS = "KEY\nKEY1\nKEY2\n";

/** How long an engine that hangs is waited for. */
const HANG_WAIT = "500ms";

export async function startRouterUnderTest(setup: RouterSetup): Promise<RouterUnderTest> {
  const folder = await Deno.makeTempDir({ prefix: "heddle-case-" });
  await Deno.writeTextFile(`${folder}/keys`, KEYS, { mode: 0o600 });
  const records: UsageRecord[] = [];
  let next = Promise.withResolvers<void>();
  const registry = new Registry();
  const limited = Object.keys(setup.key).length > 0;
  const control = limited ? await startCaseControl(setup.key) : undefined;
  const config = configSchema.parse({
    name: "case/1",
    listen: "127.0.0.1:0",
    admin: { listen: "127.0.0.1:0" },
    state_directory: folder,
    ...(control === undefined
      ? { keys: { policy: "key_file", file: `${folder}/keys` } }
      : { keys: { policy: "control" }, control: { urls: [control.url] } }),
    ...(setup.hangs ? { timeouts: { first_byte: HANG_WAIT, whole_answer: HANG_WAIT } } : {}),
    endpoints: setup.replicas.map(({ name, port }) => ({
      name,
      url: `http://127.0.0.1:${port}`,
      models: setup.models.map((model) => ({ name: model })),
    })),
    models: Object.entries(setup.declared).map(([name, { aliases, fallbacks }]) => ({
      name,
      ...(aliases === undefined ? {} : { aliases }),
      ...(fallbacks === undefined ? {} : { fallbacks }),
    })),
    cors: { origins: ["https://app.example"] },
    shutdown_timeout: "1s",
    // Engines of cases have no metrics, and count what they are asked.
    scheduling: { scrape_interval: "0s" },
  });
  const router = await startRouter(settingsOf(config, "case"), registry, {
    account: (record) => {
      records.push(record);
      next.resolve();
      next = Promise.withResolvers();
    },
  });
  if (control !== undefined) await within(READY_MS_MAX, () => router.notReady() === undefined);
  return {
    port: router.address.port,
    records,
    recorded: () => next.promise,
    failedTries: () => sumOf(registry, "heddle_router_failed_tries_total"),
    inFlight: () => sumOf(registry, "heddle_router_requests_in_flight"),
    reservedTokens: () => sumOf(registry, "heddle_router_reserved_tokens"),
    keyOf: control === undefined ? (name) => name : caseKey,
    async [Symbol.asyncDispose]() {
      await router.stop();
      await control?.close();
      await Deno.remove(folder, { recursive: true });
    },
  };
}

/** From the start to the first word of a control on the same machine. */
const READY_MS_MAX = 10_000;
const LOOK_MS = 10;

async function within(ms: number, there: () => boolean): Promise<void> {
  for (const deadline = performance.now() + ms; !there();) {
    if (performance.now() > deadline) throw new Error("The router did not become ready");
    await new Promise((resolve) => setTimeout(resolve, LOOK_MS));
  }
}

async function sumOf(registry: Registry, name: string): Promise<number> {
  const metric = registry.getSingleMetric(name);
  if (metric === undefined) throw new Error(`There is no metric ${name}`);
  return (await metric.get()).values.reduce((sum, { value }) => sum + value, 0);
}
