/**
 * For tests of the supervisor: a node with the real launcher and store, whose one engine is a shell
 * script, and whose HTTP side is answered by a server in the test.
 */
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { readTextIfExists } from "@heddle/common/atomic_file";
import type { Revision } from "@heddle/proto/revision";
import type { Shard, ShardSpec, StateKind } from "./core/shard/shard.ts";
import { aSpec } from "./core/shard/shard_fake.ts";
import type { Status } from "./core/shard/status.ts";
import { ProcessLauncher } from "./edge/launcher/process.ts";
import { ShardStore } from "./edge/shard_store.ts";
import { eventually } from "./eventually_fake.ts";
import { Effects } from "./effects.ts";
import type { Prepared } from "./prepare.ts";
import { Supervisor } from "./supervisor.ts";

const SHIM = fileURLToPath(new URL("../bin/heddle-shim", import.meta.url));
const WAIT_MS_MAX = 20_000;

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
  /** The shard once it is in that state; rejects when it is not within `waitMs`, 20 s left out. */
  reached(shardId: string, kind: StateKind, waitMs?: number): Promise<Status>;
  /** Waits for words in a shard's log. */
  said(shardId: string, words: string): Promise<string>;
  /** Ends this agent, and begins another one with the same state. Engines go on. */
  restart(between?: () => Promise<void>): Promise<void>;
}

/** Opens a node in a fresh state directory. Disposing of it ends whatever still runs. */
export async function openNode(): Promise<FakeNode> {
  const root = await Deno.makeTempDir();
  const launchers: ProcessLauncher[] = [];
  const told = new Told();
  let sequence = 0;
  let parts = await build(root, launchers, told);
  const next = (): Revision => ({ term: 1, sequence: ++sequence });
  return {
    root,
    told: told.all,
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
    reached: (shardId, kind, waitMs = WAIT_MS_MAX) =>
      told.reached(() => parts.supervisor, { shardId, kind, waitMs }),
    async said(shardId, words) {
      let text = "";
      await eventually(`${shardId} says ${words}`, async () => {
        text = await logOf(parts, shardId);
        return text.includes(words);
      });
      return text;
    },
    async restart(between) {
      await parts.supervisor.close();
      await between?.();
      parts = await build(root, launchers, told);
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

/** What supervisors told, over restarts. */
class Told {
  readonly all: { readonly shardId: string; readonly status: Status }[] = [];
  #change = Promise.withResolvers<void>();

  add(shardId: string, status: Status): void {
    this.all.push({ shardId, status });
    this.#change.resolve();
    this.#change = Promise.withResolvers();
  }

  async reached(
    supervisor: () => Supervisor,
    wanted: { readonly shardId: string; readonly kind: StateKind; readonly waitMs: number },
  ): Promise<Status> {
    const { shardId, kind, waitMs } = wanted;
    const find = () =>
      supervisor().statuses().find(({ shard }) => shard.spec.shardId === shardId)?.status;
    const late = Promise.withResolvers<never>();
    const timer = setTimeout(() => {
      late.reject(new Error(`${shardId} is not ${kind} but ${JSON.stringify(find())}`));
    }, waitMs);
    try {
      while (true) {
        const status = find();
        if (status?.state === kind) return status;
        await Promise.race([this.#change.promise, late.promise]);
      }
    } finally {
      clearTimeout(timer);
    }
  }
}

async function logOf(
  { store, launcher }: { store: ShardStore; launcher: ProcessLauncher },
  shardId: string,
): Promise<string> {
  const runs = await store.runs(shardId);
  const texts = await Promise.all(runs.map((run) => readTextIfExists(launcher.logFile(run))));
  return texts.join("");
}

async function build(
  root: string,
  launchers: ProcessLauncher[],
  told: Told,
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
    adoptReadyMs: 60_000,
    now: Date.now,
    makeKey: () => "sk-heddle-replica-test",
    onStatus: (shard, status) => told.add(shard.spec.shardId, status),
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
