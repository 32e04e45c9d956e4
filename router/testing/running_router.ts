/** A router in this process, on free ports, with what tests want to know of it. */
import { Registry } from "prom-client";
import { parseConfig } from "@heddle/common/config_file";
import { formatAddress } from "@heddle/common/address";
import { stringify } from "yaml";
import { configSchema } from "../config.ts";
import { settingsOf } from "../settings/settings.ts";
import type { UsageRecord } from "../core/request/usage_record.ts";
import { startRouter } from "../router.ts";

export interface RunningRouter extends AsyncDisposable {
  readonly url: string;
  readonly records: UsageRecord[];
  /** Resolves with the record of request `count`, counted from 1. */
  record(count: number): Promise<UsageRecord>;
  /** The value of one metric line, or undefined. */
  metric(line: string): Promise<number | undefined>;
  /** One round trip: lets everything that is ready happen. */
  tick(): Promise<void>;
  notReady(): string | undefined;
  reload(): Promise<void>;
  post(path: string, body: unknown, init?: RequestInit): Promise<Response>;
}

export async function runRouter(
  config: Record<string, unknown>,
  hooks: {
    readonly heartbeatMs?: number;
    readonly hotMs?: number;
    readonly shareWaitMs?: number;
    readonly firstShareWaitMs?: number;
  } = {},
): Promise<RunningRouter> {
  const parsed = parseConfig(
    configSchema,
    stringify({
      listen: "127.0.0.1:0",
      admin: { listen: "127.0.0.1:0" },
      // Scripted engines count what they are asked.
      scheduling: { scrape_interval: "0s" },
      ...config,
    }),
    "router.yaml",
  );
  if (parsed.kind === "invalid") throw new Error(JSON.stringify(parsed.complaints));
  const registry = new Registry();
  const records: UsageRecord[] = [];
  let waiters: { count: number; resolve: (record: UsageRecord) => void }[] = [];
  const router = await startRouter(settingsOf(parsed.value, "test"), registry, {
    hotMs: 40,
    ...hooks,
    account(record) {
      records.push(record);
      waiters = waiters.filter(({ count, resolve }) => {
        if (records.length < count) return true;
        resolve(record);
        return false;
      });
    },
  });
  const url = `${config["tls"] === undefined ? "http" : "https"}://${
    formatAddress(router.address)
  }`;
  return {
    url,
    records,
    record: (count) => {
      const known = records[count - 1];
      return known === undefined
        ? new Promise((resolve) => waiters.push({ count, resolve }))
        : Promise.resolve(known);
    },
    async metric(line) {
      const text = await registry.metrics();
      const found = text.split("\n").find((each) => each.startsWith(`${line} `));
      return found === undefined ? undefined : Number(found.slice(line.length));
    },
    async tick() {
      await (await fetch(`${url}/health`)).body?.cancel();
    },
    notReady: router.notReady,
    reload: router.reload,
    post: (path, body, init = {}) =>
      fetch(url + path, {
        method: "POST",
        headers: { "content-type": "application/json", ...init.headers },
        body: typeof body === "string" ? body : JSON.stringify(body),
        ...(init.signal === undefined ? {} : { signal: init.signal }),
      }),
    async [Symbol.asyncDispose]() {
      await router.stop();
    },
  };
}

/** Endpoints of one model "m", known to the engine as "served", for engines at these URLs. */
export function endpointsAt(...urls: readonly string[]) {
  return urls.map((url, index) => ({
    name: `e${index}`,
    url,
    models: [{ name: "m", served_name: "served" }],
  }));
}

export const CHAT = { model: "m", messages: [{ role: "user", content: "count" }] } as const;
