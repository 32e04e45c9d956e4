/**
 * For tests of the supervisor: a node with the real launcher and store, whose one engine is a shell
 * script, and whose HTTP side is answered by a server in the test.
 */
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { readTextIfExists } from "@heddle/common/atomic_file";
import { delay } from "@heddle/common/task";
import type { Revision } from "@heddle/proto/revision";
import type { Shard, ShardSpec, StateKind } from "./core/shard/shard.ts";
import { aSpec } from "./core/shard/shard_fake.ts";
import type { Status } from "./core/shard/status.ts";
import { ProcessLauncher } from "./edge/launcher/process.ts";
import { ShardStore } from "./edge/shard_store.ts";
import { Effects } from "./effects.ts";
import type { Prepared } from "./prepare.ts";
import { Supervisor } from "./supervisor.ts";

const SHIM = fileURLToPath(new URL("../bin/heddle-shim", import.meta.url));
const WAIT_MS_MAX = 20_000;
const POLL_MS = 20;

export interface FakeNode extends AsyncDisposable {
  readonly root: string;
  readonly supervisor: Supervisor;
  readonly launcher: ProcessLauncher;
  readonly store: ShardStore;
  /** Every status that was told, in order. */
  readonly told: readonly { readonly shardId: string; readonly status: Status }[];
  /** Orders a shard; its engine is a shell that runs `script`. */
  start(script: string, spec?: Partial<ShardSpec>): Promise<ShardSpec>;
  stop(shardId: string, graceMs?: number): Promise<void>;
  /** The shard once it is in that state. */
  reached(shardId: string, kind: StateKind): Promise<Status>;
  /** Waits for words in a shard's log. */
  said(shardId: string, words: string): Promise<string>;
  /** Ends this agent, and begins another one with the same state. Engines go on. */
  restart(between?: () => Promise<void>): Promise<void>;
}

/** Opens a node in a fresh state directory. Disposing of it ends whatever still runs. */
export async function openNode(): Promise<FakeNode> {
  const root = await Deno.makeTempDir();
  const launchers: ProcessLauncher[] = [];
  const told: { shardId: string; status: Status }[] = [];
  const listeners = new Set<() => void>();
  let sequence = 0;
  let parts = await build(root, launchers, (shardId, status) => {
    told.push({ shardId, status });
    for (const listener of [...listeners]) listener();
  });
  const next = (): Revision => ({ term: 1, sequence: ++sequence });
  const statusOf = (shardId: string) =>
    parts.supervisor.statuses().find(({ shard }) => shard.spec.shardId === shardId)?.status;
  return {
    root,
    told,
    get supervisor() {
      return parts.supervisor;
    },
    get launcher() {
      return parts.launcher;
    },
    get store() {
      return parts.store;
    },
    async start(script, changes = {}) {
      const spec = aSpec({ engine: "sim", args: [script], ...changes });
      const verdict = await parts.supervisor.start({ spec, revision: next() });
      if (verdict.kind !== "start") throw new Error(JSON.stringify(verdict));
      return spec;
    },
    async stop(shardId, graceMs = 0) {
      const order = { shardId, revision: next(), reason: "drained", graceMs };
      const verdict = await parts.supervisor.stop(order);
      if (verdict.kind === "refused") throw new Error(verdict.detail);
    },
    async reached(shardId, kind) {
      const timer = setTimeout(() => late.reject(new Error(wait(kind))), WAIT_MS_MAX);
      const late = Promise.withResolvers<never>();
      const wait = (wanted: string) =>
        `waited in vain for ${shardId} to be ${wanted}: ${JSON.stringify(statusOf(shardId))}`;
      try {
        while (true) {
          const status = statusOf(shardId);
          if (status?.state === kind) return status;
          const change = Promise.withResolvers<void>();
          listeners.add(change.resolve);
          await Promise.race([change.promise, late.promise]);
          listeners.delete(change.resolve);
        }
      } finally {
        clearTimeout(timer);
      }
    },
    async said(shardId, words) {
      const signal = AbortSignal.timeout(WAIT_MS_MAX);
      while (true) {
        for (const run of await parts.store.runs(shardId)) {
          const text = await readTextIfExists(parts.launcher.logFile(run)) ?? "";
          if (text.includes(words)) return text;
        }
        signal.throwIfAborted();
        await delay(POLL_MS, signal);
      }
    },
    async restart(between) {
      await parts.supervisor.close();
      await between?.();
      parts = await build(root, launchers, (shardId, status) => {
        told.push({ shardId, status });
        for (const listener of [...listeners]) listener();
      });
    },
    async [Symbol.asyncDispose]() {
      await parts.supervisor.close();
      for (const { handle, pid, started } of await parts.launcher.list()) {
        await parts.launcher.signal({ name: "left", handle, pid, started }, "SIGKILL");
      }
      await Promise.all(launchers.map((launcher) => launcher.childrenEnded()));
      await Deno.remove(root, { recursive: true });
    },
  };
}

async function build(
  root: string,
  launchers: ProcessLauncher[],
  onStatus: (shardId: string, status: Status) => void,
) {
  const store = new ShardStore(root);
  await store.open();
  const launcher = new ProcessLauncher({ shim: SHIM, stateDirectory: root });
  launchers.push(launcher);
  const effects = new Effects({
    store,
    launcher,
    address: "127.0.0.1",
    makeHandle: () => crypto.randomUUID().replaceAll("-", ""),
    prepare: (shard) => Promise.resolve(prepared(shard)),
  });
  const supervisor = new Supervisor({
    store,
    effects,
    address: "127.0.0.1",
    ports: { first: 1_024, last: 65_535 },
    gpus: () => undefined,
    now: Date.now,
    makeKey: () => "sk-heddle-replica-test",
    onStatus: (shard, status) => onStatus(shard.spec.shardId, status),
  });
  await supervisor.adopt();
  return { store, launcher, supervisor };
}

function prepared({ spec, apiKey }: Shard): Prepared {
  return {
    kind: "prepared",
    processes: spec.args.map((script, index) => ({
      name: index === spec.args.length - 1 ? "server" : `sidecar ${index}`,
      argv: ["/bin/sh", "-c", script],
      env: { PATH: "/usr/bin:/bin", VLLM_API_KEY: apiKey },
    })),
  };
}

/** Where a shard's state lies. */
export function stateFile(node: FakeNode, shardId: string): string {
  return join(node.store.folder(shardId), "state.json");
}
