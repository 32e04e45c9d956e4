/** Control, a router and two engines as processes that can be killed and started again in their places. */
import { join } from "node:path";
import { createClient } from "@connectrpc/connect";
import { connectRpc } from "@heddle/common/rpc_client";
import { type Limits, ScopeKind, TenancyService } from "@heddle/proto/gen/tenancy";
import { stringify } from "yaml";
import {
  eventually,
  freePorts,
  metricOf,
  type RunningProcess,
  startProgram,
  startSim,
} from "../router_only/processes.ts";

export const MODEL = "m";
/** Per million tokens, in millionths of a unit. */
export const PRICE = {
  promptMicro: 1_000_000n,
  cachedMicro: 1_000_000n,
  completionMicro: 3_000_000n,
};
const SYNC_MS_MAX = 60_000;

export type Killable = "control" | "router";

export interface Totals {
  readonly prompt: number;
  readonly completion: number;
}

export class Site implements AsyncDisposable {
  readonly #folder: string;
  readonly #ports: readonly number[];
  readonly #engines: readonly RunningProcess[];
  readonly #running = new Map<Killable, RunningProcess>();

  private constructor(
    folder: string,
    ports: readonly number[],
    engines: readonly RunningProcess[],
  ) {
    this.#folder = folder;
    this.#ports = ports;
    this.#engines = engines;
  }

  static async start(simArgs: readonly string[]): Promise<Site> {
    const folder = await Deno.makeTempDir({ prefix: "heddle-ledger-" });
    const ports = freePorts(7);
    const engines = await Promise.all(
      ports.slice(5).map((port) => startSim({ port, args: simArgs })),
    );
    const site = new Site(folder, ports, engines);
    await Deno.mkdir(join(folder, "control"));
    await Deno.mkdir(join(folder, "router"));
    await Deno.writeTextFile(join(folder, "control/catalog.yaml"), "models: []\n");
    await site.run("control");
    return site;
  }

  get url(): string {
    return `http://127.0.0.1:${this.#ports[3]}`;
  }

  /** Where control keeps its store. */
  get controlState(): string {
    return join(this.#folder, "control");
  }

  /** What every program of it has written to its log. */
  get logs(): string {
    return [...this.#running.values()].map(({ log }) => log()).join("");
  }

  async run(what: Killable): Promise<void> {
    this.#running.set(what, await (what === "control" ? this.#control() : this.#router()));
  }

  /** Kills a program as a machine that loses power does, but for the disk. */
  async kill(what: Killable): Promise<void> {
    const process = this.#running.get(what);
    process?.signal("SIGKILL");
    await process?.exited;
    await process?.[Symbol.asyncDispose]();
    this.#running.delete(what);
  }

  /** Ends a program as an operator does. */
  async stop(what: Killable): Promise<void> {
    const process = this.#running.get(what);
    process?.signal("SIGTERM");
    await process?.exited;
    await process?.[Symbol.asyncDispose]();
    this.#running.delete(what);
  }

  /** Makes a key with limits of its project, and returns the secret and the key's id. */
  async key(limits: Partial<Limits> = {}): Promise<{ secret: string; id: string }> {
    const { $typeName: _, ...wanted } = { $typeName: "", ...limits };
    return await this.#asOperator(async (tenancy) => {
      await tenancy.createScope({ kind: ScopeKind.ORGANISATION, name: "acme" });
      await tenancy.createScope({ kind: ScopeKind.PROJECT, name: "chat", parent: "acme" });
      await tenancy.setPrice({ model: MODEL, price: { basis: { case: "tokens", value: PRICE } } });
      const made = await tenancy.createKey({
        project: "acme/chat",
        settings: { name: "tester" },
        limits: wanted,
      });
      return { secret: made.secret, id: made.key?.id ?? "" };
    });
  }

  async revoke(id: string): Promise<void> {
    await this.#asOperator((tenancy) => tenancy.revokeKey({ key: id }));
  }

  /** What control has of the last day. */
  async ledger(): Promise<Totals & { readonly requests: number; readonly costMicro: number }> {
    const { rows } = await this.#asOperator((tenancy) =>
      tenancy.queryUsage({ sinceMs: 86_400_000n })
    );
    const [row] = rows;
    return {
      requests: Number(row?.requests ?? 0n),
      prompt: Number(row?.promptTokens ?? 0n),
      completion: Number(row?.completionTokens ?? 0n),
      costMicro: Number(row?.costMicro ?? 0n),
    };
  }

  /** What the engines say that they did. */
  async engines(): Promise<Totals> {
    const sum = async (name: string) => {
      const all = await Promise.all(this.#engines.map(({ url }) => metricOf(url, name)));
      return all.reduce((a, b) => a + b, 0);
    };
    return {
      prompt: await sum("vllm:prompt_tokens_total"),
      completion: await sum("vllm:generation_tokens_total"),
    };
  }

  /** Waits until nothing is in flight and control has every record. */
  async settled(): Promise<void> {
    const admin = `http://127.0.0.1:${this.#ports[4]}`;
    await eventually("the router has brought its records to control", async () => {
      // In this order: a request becomes a record in memory, and that one on disk.
      const left = await metricOf(admin, "heddle_router_requests_in_flight") +
        await metricOf(admin, "heddle_router_ledger_unwritten_records") +
        await metricOf(admin, "heddle_router_ledger_bytes");
      return left === 0 ? true : undefined;
    }, SYNC_MS_MAX);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const what of ["router", "control"] as const) await this.kill(what);
    for (const engine of this.#engines) await engine[Symbol.asyncDispose]();
    await Deno.remove(this.#folder, { recursive: true });
  }

  async #asOperator<T>(
    work: (tenancy: ReturnType<typeof createClient<typeof TenancyService>>) => Promise<T>,
  ): Promise<T> {
    const url = `http://127.0.0.1:${this.#ports[1]}`;
    const connection = connectRpc({ url, tls: undefined });
    try {
      return await work(createClient(TenancyService, connection.transport));
    } finally {
      connection.close();
    }
  }

  async #control(): Promise<RunningProcess> {
    const [agents, admin, metrics] = this.#ports;
    const state = this.controlState;
    const file = join(state, "control.yaml");
    await Deno.writeTextFile(
      file,
      stringify({
        cluster: "ledger",
        agents: { listen: `127.0.0.1:${agents}` },
        admin: { listen: `127.0.0.1:${admin}` },
        metrics: { listen: `127.0.0.1:${metrics}` },
        catalog_file: join(state, "catalog.yaml"),
        state_directory: state,
      }),
    );
    return await startProgram("heddle-control", ["--config", file], {
      url: `http://127.0.0.1:${admin}`,
      probe: `http://127.0.0.1:${metrics}/ready`,
      env: { HEDDLE_STATE: state },
    });
  }

  async #router(): Promise<RunningProcess> {
    const [agents, , , listen, admin] = this.#ports;
    const state = join(this.#folder, "router");
    const file = join(state, "router.yaml");
    await Deno.writeTextFile(
      file,
      stringify({
        name: "ledger/1",
        listen: `127.0.0.1:${listen}`,
        admin: { listen: `127.0.0.1:${admin}` },
        control: { urls: [`http://127.0.0.1:${agents}`] },
        keys: { policy: "control" },
        state_directory: state,
        endpoints: this.#engines.map(({ url }, index) => ({
          name: `sim-${index}`,
          url,
          models: [{ name: MODEL, served_name: "served" }],
        })),
      }),
    );
    return await startProgram("heddle-router", ["--config", file], {
      url: this.url,
      probe: `${this.url}/ready`,
      env: { HEDDLE_STATE: state },
    });
  }
}
