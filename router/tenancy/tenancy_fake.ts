/** A running router with an engine and a control that says what a test wants of keys and limits. */
import type { MessageInitShape } from "@bufbuild/protobuf";
import { apiKeyFrom, apiKeyHash } from "@heddle/common/api_key";
import type { RecordUsageRequest } from "@heddle/proto/gen/router";
import { type KeySchema, ScopeKind, type ScopeSchema } from "@heddle/proto/gen/tenancy";
import {
  type FakeControl,
  type ShareScript,
  startFakeControl,
  type WatchMessage,
} from "../edge/control/control_fake.ts";
import { CHAT, type RunningRouter, runRouter } from "../testing/running_router.ts";
import {
  type EngineScript,
  HEALTHY,
  type ScriptedEngine,
  startEngine,
} from "../testing/scripted_engine.ts";

type Limits = NonNullable<MessageInitShape<typeof ScopeSchema>["limits"]>;
type KeyInit = Omit<MessageInitShape<typeof KeySchema>, "$typeName">;

/** The key of number `n`. */
export function keyOf(n: number): string {
  return apiKeyFrom(new Uint8Array(32).fill(n));
}

export function key(n: number, over: KeyInit = {}): KeyInit {
  const secret = keyOf(n);
  return {
    id: `key-${n}`,
    name: `key ${n}`,
    secrets: [{ sha256: apiKeyHash(secret), prefix: secret.slice(0, 16) }],
    scopeIds: ["org-1", "project-1", `key-${n}`],
    organisation: "acme",
    project: "chat",
    projectId: "project-1",
    ...over,
  };
}

export function scope(id: string, limits: Limits, kind = ScopeKind.KEY) {
  return { id, kind, name: id, limits };
}

/** Gives every router all that it asks for, as control does when there is only one. */
export const ALL: (limits: Readonly<Record<string, number>>) => ShareScript = (limits) => {
  const held = new Set<string>();
  return ({ demands }) => ({
    routers: 1,
    grants: demands.map(({ scopeId, dimension }) => {
      const name = `${scopeId} ${dimension}`;
      const share = limits[scopeId] ?? 0;
      const credit = held.has(name) ? 0 : share;
      held.add(name);
      return { scopeId, dimension, share, credit, validityMs: 3_000 };
    }),
  });
};

export interface Setup extends AsyncDisposable {
  readonly control: FakeControl;
  readonly engine: ScriptedEngine;
  readonly folder: string;
  say(message: WatchMessage): void;
  router(
    over?: Record<string, unknown>,
    hooks?: { readonly shareWaitMs?: number; readonly firstShareWaitMs?: number },
  ): Promise<RunningRouter>;
}

export async function setup(first: WatchMessage, script: EngineScript = HEALTHY): Promise<Setup> {
  const control = await startFakeControl();
  const engine = await startEngine(script);
  const folder = await Deno.makeTempDir();
  let sequence = 1n;
  const say = (message: WatchMessage) =>
    control.say({ revision: { term: 1n, sequence: sequence++ }, ...message });
  say({
    snapshot: true,
    snapshotEnd: true,
    settled: true,
    models: [
      { name: "m", aliases: ["nick"], fallbacks: ["spare"] },
      { name: "spare" },
      { name: "free" },
    ],
    endpoints: ["m", "free"].map((model) => ({
      replicaId: `r-${model}`,
      model,
      address: `127.0.0.1:${engine.port}`,
      node: "n1",
      servedName: "served",
      weight: 1,
      gpus: 2,
      pool: "ib-a/h100-80g",
    })),
    ...first,
  });
  return {
    control,
    engine,
    folder,
    say,
    async router(over = {}, hooks = { shareWaitMs: 5_000 }) {
      const router = await runRouter({
        name: "host/1",
        state_directory: folder,
        control: { urls: [control.url] },
        report_interval: "100ms",
        keys: { policy: "control" },
        ...over,
      }, hooks);
      while (router.notReady() !== undefined) await router.tick();
      return router;
    },
    async [Symbol.asyncDispose]() {
      await control.close();
      await engine[Symbol.asyncDispose]();
      await Deno.remove(folder, { recursive: true });
    },
  };
}

export function ask(router: RunningRouter, n: number, body: Record<string, unknown> = {}) {
  return router.post("/v1/chat/completions", { ...CHAT, ...body }, {
    headers: { authorization: `Bearer ${keyOf(n)}` },
  });
}

/** The status of an answer, and the code of its error. */
export async function said(response: Response): Promise<string> {
  const body = await response.json();
  return `${response.status} ${body.error?.code ?? body.error?.type ?? "ok"}`;
}

export async function until(what: () => Promise<boolean> | boolean, router: RunningRouter) {
  for (let tries = 0; tries < 5_000; tries++) {
    if (await what()) return;
    await router.tick();
  }
  throw new Error("It never came to be");
}

export function recordsOf(control: FakeControl): RecordUsageRequest["records"] {
  return control.recorded.flatMap(({ records }) => records);
}
