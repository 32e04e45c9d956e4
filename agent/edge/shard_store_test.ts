import { deepEqual, equal, ok, rejects } from "node:assert/strict";
import { join } from "node:path";
import { aShard } from "../core/shard/shard_fake.ts";
import { ShardStore } from "./shard_store.ts";
import { lockState } from "./state_lock.ts";

async function inStore(work: (store: ShardStore, root: string) => Promise<void>): Promise<void> {
  const root = await Deno.makeTempDir();
  try {
    const store = new ShardStore(join(root, "state"));
    await store.open();
    await work(store, join(root, "state"));
  } finally {
    await Deno.remove(root, { recursive: true });
  }
}

Deno.test("ShardStore gives back what it was given, in files for its owner alone", () =>
  inStore(async (store) => {
    const shard = aShard("ready", {
      spec: {
        gpus: [{ index: 1, uuid: "GPU-a" }],
        hcas: [{ name: "mlx5_0", port: 1 }],
        args: ["--x"],
        env: { A: "b" },
        memoryBytes: 2n ** 40n,
      },
    });
    await store.save(shard);
    const { shards, unknownVersion, corrupt } = await store.load();
    deepEqual([unknownVersion, corrupt], [[], []]);
    const [loaded] = shards;
    deepEqual(loaded?.state, shard.state);
    equal(loaded?.apiKey, shard.apiKey);
    deepEqual(loaded?.spec.gpus.map(({ index, uuid }) => [index, uuid]), [[1, "GPU-a"]]);
    equal(loaded?.spec.memoryBytes, 2n ** 40n);
    const { mode } = await Deno.stat(join(store.folder(shard.spec.shardId), "state.json"));
    equal((mode ?? 0) & 0o077, 0);
  }));

Deno.test("ShardStore keeps every id below its own folder, and tells them apart", () =>
  inStore(async (store, root) => {
    const ids = ["a", "../../etc", "a/b", "a%2Fb", ".", "ü b", "-rf"];
    for (const shardId of ids) await store.save(aShard("ready", { spec: { shardId } }));
    const { shards } = await store.load();
    deepEqual(shards.map(({ spec }) => spec.shardId).sort(), [...ids].sort());
    for (const shardId of ids) ok(store.folder(shardId).startsWith(`${root}/shards/s-`));
    await store.remove("../../etc");
    await store.remove("never was");
    equal((await store.load()).shards.length, ids.length - 1);
  }));

Deno.test("ShardStore tells what it cannot read apart: newer, or spoilt", () =>
  inStore(async (store) => {
    const write = async (shardId: string, change: (text: string) => string) => {
      await store.save(aShard("ready", { spec: { shardId } }));
      const file = join(store.folder(shardId), "state.json");
      await Deno.writeTextFile(file, change(await Deno.readTextFile(file)));
    };
    await write("newer", (text) => text.replace('"version": 1', '"version": 2'));
    await write("half", (text) => text.slice(0, 40));
    await write("empty", () => "");
    await write("strange", (text) => text.replace('"kind": "ready"', '"kind": "dreaming"'));
    await write("other", (text) => text.replace('"shardId": "other"', '"shardId": "another"'));
    await write("more", (text) => text.replace('"version": 1', '"version": 1, "hint": {"x": 1}'));
    await Deno.mkdir(join(store.folder("bare")));
    const { shards, unknownVersion, corrupt } = await store.load();
    deepEqual(shards.map(({ spec }) => spec.shardId), ["more"], "what is added is ignored");
    deepEqual(unknownVersion.map(({ shardId }) => shardId), ["newer"]);
    equal(unknownVersion[0]?.spec?.model, "demo", "what can be told of it is");
    deepEqual(
      corrupt.map(({ shardId }) => shardId).sort(),
      ["bare", "empty", "half", "other", "strange"],
    );
  }));

Deno.test("ShardStore keeps the highest revision, and begins anew where it cannot be read", () =>
  inStore(async (store, root) => {
    deepEqual(await store.readHighest(), { term: 0, sequence: 0 });
    await store.writeHighest({ term: 7, sequence: 12 });
    deepEqual(await store.readHighest(), { term: 7, sequence: 12 });
    await Deno.writeTextFile(join(root, "node.json"), "{");
    deepEqual(await store.readHighest(), { term: 0, sequence: 0 });
  }));

Deno.test("ShardStore and lockState() say in one line why a directory cannot be used", async () => {
  await rejects(
    new ShardStore("/dev/null/x").open(),
    /Cannot use the state directory \/dev\/null\/x/,
  );
  await rejects(lockState("/dev/null/x"), /Cannot use the state directory \/dev\/null\/x/);
});

Deno.test("lockState() lets one agent at a time have a directory", () =>
  inStore(async (_store, root) => {
    {
      using _held = await lockState(root);
      await rejects(lockState(root), /another agent is running on it/);
    }
    using _again = await lockState(root);
  }));

Deno.test("ShardStore keeps the last few folders that it put aside", async () => {
  const root = await Deno.makeTempDir();
  try {
    const store = new ShardStore(root);
    await store.open();
    const kept: string[] = [];
    for (let count = 0; count < 12; count++) {
      const directory = store.folder(`shard-${count}`);
      await Deno.mkdir(directory);
      kept.push(await store.setAside({ directory }));
    }
    const names = (await Array.fromAsync(Deno.readDir(`${root}/shards`))).map(({ name }) => name);
    equal(names.length, 8);
    ok(names.includes(kept.at(-1)?.split("/").at(-1) ?? "?"));
    deepEqual(await store.load(), { shards: [], unknownVersion: [], corrupt: [] });
  } finally {
    await Deno.remove(root, { recursive: true });
  }
});
