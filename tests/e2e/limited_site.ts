/** One control, any number of routers and one engine, each a process, and load that is counted. */
import { join } from "node:path";
import { type Client, createClient } from "@connectrpc/connect";
import { connectRpc } from "@heddle/common/rpc_client";
import { type Limits, ScopeKind, TenancyService } from "@heddle/proto/gen/tenancy";
import { stringify } from "yaml";
import {
  freePorts,
  type RunningProcess,
  startProgram,
  startSim,
} from "../router_only/processes.ts";

const MODEL = "m";
const MINUTE_MS = 60_000;

/** What became of one request. Times are this process's own. */
export interface Answer {
  readonly router: number;
  /** When it was sent: whoever passes does so within moments. */
  readonly at: number;
  readonly status: number;
  /** The limit that a 429 named; empty for any other answer. */
  readonly limit: string;
  /** Prompt and completion tokens, as the engine counted them. */
  readonly tokens: number;
}

export interface Ask {
  readonly router: number;
  readonly secret: string;
  readonly maxTokens: number;
}

export class LimitedSite implements AsyncDisposable {
  readonly #folder: string;
  readonly #processes: RunningProcess[] = [];
  readonly #routers: string[] = [];
  #admin = "";

  private constructor(folder: string) {
    this.#folder = folder;
  }

  static async start(routers: number, simArgs: readonly string[] = []): Promise<LimitedSite> {
    const site = new LimitedSite(await Deno.makeTempDir({ prefix: "heddle-limits-" }));
    try {
      await site.#start(routers, simArgs);
    } catch (error) {
      await site[Symbol.asyncDispose]();
      throw error;
    }
    return site;
  }

  async #start(routers: number, simArgs: readonly string[]): Promise<void> {
    const [sim = 0, agents = 0, ...more] = freePorts(4 + 2 * routers);
    const engine = await startSim({ port: sim, args: simArgs });
    this.#processes.push(engine);
    await this.#startControl(agents, more.slice(0, 2));
    const ports = more.slice(2);
    const started = await Promise.all(
      Array.from({ length: routers }, (_, index) =>
        this.#startRouter(index, {
          engine: engine.url,
          agents,
          ports: ports.slice(2 * index, 2 * index + 2),
        })),
    );
    this.#processes.push(...started);
    this.#routers.push(...started.map(({ url }) => url));
  }

  /** Makes a key with these limits, and returns its secret. */
  async key(name: string, limits: Partial<Omit<Limits, "$typeName">>): Promise<string> {
    return await this.#asOperator(async (tenancy) => {
      const { scopes } = await tenancy.listScopes({ kind: ScopeKind.PROJECT });
      if (scopes.length === 0) {
        await tenancy.createScope({ kind: ScopeKind.ORGANISATION, name: "acme" });
        await tenancy.createScope({ kind: ScopeKind.PROJECT, name: "chat", parent: "acme" });
      }
      const made = await tenancy.createKey({ project: "acme/chat", settings: { name }, limits });
      return made.secret;
    });
  }

  /** Ends every key for good; resolves when control has answered. */
  async revokeAll(): Promise<void> {
    await this.#asOperator(async (tenancy) => {
      const { keys } = await tenancy.listKeys({});
      for (const { id } of keys) await tenancy.revokeKey({ key: id, reason: "it leaked" });
    });
  }

  async #asOperator<T>(use: (tenancy: Client<typeof TenancyService>) => Promise<T>): Promise<T> {
    const connection = connectRpc({ url: this.#admin, tls: undefined });
    try {
      return await use(createClient(TenancyService, connection.transport));
    } finally {
      connection.close();
    }
  }

  /** Sends one request and reads its answer to the end. */
  async ask({ router, secret, maxTokens }: Ask): Promise<Answer> {
    const at = performance.now();
    const response = await this.#send({ router, secret, maxTokens }, false);
    const body = await response.json();
    return {
      router,
      at,
      status: response.status,
      limit: response.status === 429 ? limitOf(body) : "",
      tokens: response.ok ? Number(body.usage.total_tokens) : 0,
    };
  }

  /** Sends a streamed request and returns once it is decided; `end` lets go of what was admitted. */
  async hold(ask: Ask): Promise<{ readonly admitted: boolean; end(): Promise<void> }> {
    const response = await this.#send(ask, true);
    const { body, ok } = response;
    return { admitted: ok, end: async () => await body?.cancel() };
  }

  #send({ router, secret, maxTokens }: Ask, stream: boolean): Promise<Response> {
    return fetch(`${this.#routers[router]}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${secret}`, "content-type": "application/json" },
      body: JSON.stringify({
        model: MODEL,
        max_tokens: maxTokens,
        ignore_eos: true,
        stream,
        messages: [{ role: "user", content: "a word" }],
      }),
    });
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const process of this.#processes.reverse()) await process[Symbol.asyncDispose]();
    await Deno.remove(this.#folder, { recursive: true });
  }

  async #startControl(agents: number, [admin = 0, metrics = 0]: number[]): Promise<void> {
    const state = await this.#state("control");
    await Deno.writeTextFile(join(state, "catalog.yaml"), "models: []\n");
    const listen = (port: number) => ({ listen: `127.0.0.1:${port}` });
    const file = await this.#write(state, {
      cluster: "limits",
      agents: listen(agents),
      admin: listen(admin),
      metrics: listen(metrics),
      catalog_file: join(state, "catalog.yaml"),
      state_directory: state,
    });
    this.#admin = `http://127.0.0.1:${admin}`;
    const process = await startProgram("heddle-control", ["--config", file], {
      url: this.#admin,
      probe: `http://127.0.0.1:${metrics}/ready`,
      env: { HEDDLE_STATE: state },
    });
    this.#processes.push(process);
  }

  async #startRouter(
    index: number,
    { engine, agents, ports: [port = 0, admin = 0] }: {
      readonly engine: string;
      readonly agents: number;
      readonly ports: readonly number[];
    },
  ): Promise<RunningProcess> {
    const state = await this.#state(`router-${index + 1}`);
    const file = await this.#write(state, {
      name: `limits/${index + 1}`,
      listen: `127.0.0.1:${port}`,
      admin: { listen: `127.0.0.1:${admin}` },
      control: { urls: [`http://127.0.0.1:${agents}`] },
      keys: { policy: "control" },
      state_directory: state,
      endpoints: [{ name: "sim", url: engine, models: [{ name: MODEL, served_name: "served" }] }],
    });
    const url = `http://127.0.0.1:${port}`;
    return await startProgram("heddle-router", ["--config", file], {
      url,
      probe: `${url}/ready`,
      env: { HEDDLE_STATE: state },
    });
  }

  async #state(name: string): Promise<string> {
    const state = join(this.#folder, name);
    await Deno.mkdir(state);
    return state;
  }

  async #write(state: string, config: Record<string, unknown>): Promise<string> {
    const file = join(state, "config.yaml");
    await Deno.writeTextFile(file, stringify(config));
    return file;
  }
}

function limitOf({ error }: { readonly error?: { readonly limit?: { readonly name?: string } } }) {
  return error?.limit?.name ?? JSON.stringify(error);
}

/** Requests at a steady rate, `shares` saying how many of a hundred go to each router. */
export async function steadyLoad(
  site: LimitedSite,
  { secret, maxTokens, perSecond, seconds, shares }: {
    readonly secret: string;
    readonly maxTokens: number;
    readonly perSecond: number;
    readonly seconds: number;
    readonly shares: (second: number) => readonly number[];
  },
): Promise<readonly Answer[]> {
  const from = performance.now();
  const asked: Promise<Answer>[] = [];
  const { promise, resolve } = Promise.withResolvers<void>();
  const timer = setInterval(() => {
    const second = (performance.now() - from) / 1_000;
    // What a busy machine made this late for is sent now: the load is what was said.
    while (asked.length < Math.min(second, seconds) * perSecond) {
      const router = routerOf(asked.length, shares(second));
      asked.push(site.ask({ router, secret, maxTokens }));
    }
    if (second >= seconds) resolve();
  }, 1_000 / perSecond / 2);
  await promise;
  clearInterval(timer);
  return await Promise.all(asked);
}

// Golden-ratio steps spread every share evenly over time, and alike in each run.
function routerOf(turn: number, shares: readonly number[]): number {
  let place = (turn * 0.618_033_988_75) % 1 * 100;
  for (const [router, share] of shares.entries()) {
    if (place < share) return router;
    place -= share;
  }
  return shares.length - 1;
}

/** What passed, or was used, in the fullest 60 s. */
export function fullestMinute(
  answers: readonly Answer[],
  weigh: (answer: Answer) => number,
): number {
  const passed = answers.filter(({ status }) => status === 200).sort((a, b) => a.at - b.at);
  let fullest = 0;
  let sum = 0;
  let first = 0;
  for (const answer of passed) {
    sum += weigh(answer);
    for (let old = passed[first]; old !== undefined && old.at <= answer.at - MINUTE_MS;) {
      sum -= weigh(old);
      old = passed[++first];
    }
    fullest = Math.max(fullest, sum);
  }
  return fullest;
}

/** Those that were refused though less than `amount` had passed in the 60 s before. */
export function refusedEarly(
  answers: readonly Answer[],
  amount: number,
  weigh: (answer: Answer) => number,
): readonly Answer[] {
  const passed = answers.filter(({ status }) => status === 200);
  return answers.filter(({ status, at: refusedAt }) =>
    status === 429 &&
    passed.filter(({ at }) => at <= refusedAt && at > refusedAt - MINUTE_MS)
        .reduce((sum, answer) => sum + weigh(answer), 0) < amount
  );
}
