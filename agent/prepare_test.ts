import { deepEqual, equal, match, ok } from "node:assert/strict";
import { join } from "node:path";
import { ggufBytes, LLAMA_8B } from "@heddle/common/model/gguf_fake";
import { aShard } from "./core/shard/shard_fake.ts";
import type { ShardSpec } from "./core/shard/shard.ts";
import { freePort } from "./edge/engine/free_port_fake.ts";
import { prepare, type PrepareOptions } from "./prepare.ts";

const ENGINES = [
  { name: "llamacpp", path: "/opt/a/llama-server", version: "11069" },
  { name: "llamacpp", path: "/opt/b/llama-server", version: "9000" },
];

function run(spec: Partial<ShardSpec>, changes: Partial<PrepareOptions> = {}) {
  const shard = aShard("preparing", {
    spec: { engine: "llamacpp", source: "/nowhere/m.gguf", portFirst: freePort(), ...spec },
  });
  return prepare(shard, {
    address: "127.0.0.1",
    modelDirs: ["/nowhere"],
    engines: ENGINES,
    environmentOf: () => ({ home: "/h", managementInterface: "lo", engineEnv: {}, ofEngine: {} }),
    ...changes,
  });
}

async function refusal(spec: Partial<ShardSpec>, changes: Partial<PrepareOptions> = {}) {
  const prepared = await run(spec, changes);
  return prepared.kind === "failed" ? prepared.failure : never();
}

function never(): never {
  throw new Error("it was prepared");
}

Deno.test("prepare() finds weights in any of the folders, and gives the engine their path", async () => {
  const root = await Deno.makeTempDir();
  try {
    await Deno.mkdir(join(root, "two", "tiny"), { recursive: true });
    await Deno.writeFile(join(root, "two", "tiny", "m.gguf"), ggufBytes(LLAMA_8B));
    const modelDirs = [join(root, "one"), join(root, "two")];
    const prepared = await run({ source: "tiny/m.gguf" }, { modelDirs });
    ok(prepared.kind === "prepared");
    const [server] = prepared.processes;
    equal(server?.argv[0], "/opt/a/llama-server");
    ok(server?.argv.includes(join(root, "two", "tiny", "m.gguf")));
    equal(server?.env["LLAMA_API_KEY"], "sk-heddle-replica-secret");
    equal(server?.env["HOME"], "/h");
    const lacking = await refusal({ source: "tiny/other.gguf" }, { modelDirs });
    equal(lacking.reason, "model_missing");
    match(lacking.message, /tiny\/other\.gguf does not exist on this node/);
  } finally {
    await Deno.remove(root, { recursive: true });
  }
});

Deno.test("prepare() takes the version that is asked for, and says which there are", async () => {
  const missing = await refusal({ engineVersion: "1" });
  equal(missing.reason, "engine_missing");
  match(missing.message, /Cannot run llamacpp 1: .*llamacpp 11069, llamacpp 9000/);
  const none = await refusal({}, { engines: [] });
  match(none.message, /these work: none/);
  const older = await refusal({ engineVersion: "9000" });
  equal(older.reason, "model_missing", "the engine itself was found");
});

Deno.test("prepare() refuses a port on which somebody listens", async () => {
  const root = await Deno.makeTempDir();
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  try {
    const source = join(root, "m.gguf");
    await Deno.writeFile(source, ggufBytes(LLAMA_8B));
    const taken = await refusal({ source, portFirst: listener.addr.port });
    equal(taken.reason, "port_in_use");
    match(taken.message, new RegExp(`127\\.0\\.0\\.1:${listener.addr.port}`));
  } finally {
    await Deno.remove(root, { recursive: true });
  }
});

/** Somebody who listens, with nobody else near. */
function lonelyListener(): Deno.TcpListener {
  for (let attempt = 0; attempt < 200; attempt++) {
    const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    const { port } = listener.addr;
    const near = Array.from({ length: 480 }, (_, index) => port - 240 + index)
      .filter((each) => each !== port);
    if (near[0] !== undefined && near[0] > 1_024 && near.every(isFree)) return listener;
    listener.close();
  }
  throw new Error("no port has free neighbours");
}

function isFree(port: number): boolean {
  try {
    Deno.listen({ hostname: "0.0.0.0", port }).close();
    return true;
  } catch {
    return false;
  }
}

Deno.test("prepare() refuses every port of its block that an engine needs and somebody else has", async () => {
  using listener = lonelyListener();
  const { port } = listener.addr;
  const engines = ["vllm", "sglang", "sim"].map((name) => ({
    name,
    path: `/opt/${name}`,
    version: "1",
  }));
  const two = { shardCount: 2, tp: 2 };
  const dpAttention = ["--enable-dp-attention"];
  // What is needed, by how far its port lies above the block's first.
  const cases: [Partial<ShardSpec>, number, RegExp][] = [
    [{ engine: "vllm", ...two }, 1, /the rendezvous of its ranks/],
    [{ engine: "vllm", ...two, dp: 2 }, 2, /the rendezvous of its ranks/],
    [{ engine: "vllm", launchMode: "ray" }, 32, /for Ray/],
    [{ engine: "vllm", launchMode: "ray", ...two, rank: 1 }, 35, /for Ray/],
    [{ engine: "sglang" }, 2, /for NCCL/],
    [{ engine: "sglang", ...two }, 4, /the rendezvous of its ranks/],
    [{ engine: "sglang", ...two, rank: 1 }, 0, /for HTTP/],
    [{ engine: "sglang", args: dpAttention }, 239, /its schedulers/],
    [{ engine: "sglang", ...two, args: dpAttention }, 10, /its schedulers/],
  ];
  for (const [spec, offset, use] of cases) {
    const portFirst = port - offset;
    const of = { source: "org/model", portFirst, leaderPort: portFirst, portCount: 256, ...spec };
    const { reason, message, permanent } = await refusal(of, { engines });
    deepEqual([reason, permanent], ["port_in_use", false], JSON.stringify(spec));
    match(message, use);
    match(message, new RegExp(`\\b${port}\\b`));
  }
  // What an engine does not need may be anybody's.
  const needless: [Partial<ShardSpec>, number][] = [
    [{ engine: "sim", ...two }, 1],
    [{ engine: "vllm" }, 1],
    [{ engine: "sglang" }, 233],
    [{ engine: "vllm", ...two, rank: 1 }, 0],
  ];
  for (const [spec, offset] of needless) {
    const portFirst = port - offset;
    const of = { source: "org/model", portFirst, leaderPort: portFirst, portCount: 256, ...spec };
    equal((await run(of, { engines })).kind, "prepared", JSON.stringify(spec));
  }
});

Deno.test("prepare() passes an adapter's refusal on as permanent: trying again cannot help", async () => {
  const { reason, permanent, logTail } = await refusal({ source: "org/model" });
  equal(reason, "model_source_unsupported");
  equal(permanent, true);
  deepEqual(logTail, []);
});

Deno.test("prepare() refuses what the model's own files say cannot run, and says what can", async () => {
  const root = await Deno.makeTempDir();
  try {
    const source = join(root, "model");
    await Deno.mkdir(source);
    const config = { num_attention_heads: 28, num_key_value_heads: 4, hidden_size: 3_584 };
    await Deno.writeTextFile(join(source, "config.json"), JSON.stringify(config));
    const engines = [{ name: "vllm", path: "/opt/vllm", version: "0.28.0" }];
    const gpus = () =>
      Promise.resolve([{ index: 0, gpuClass: "t4-16g", totalMib: 16, computeCapability: "7.5" }]);
    const of = (spec: Partial<ShardSpec>) =>
      refusal({ engine: "vllm", source, ...spec }, { engines, modelDirs: [root], gpus });
    const uneven = await of({ tp: 8 });
    deepEqual([uneven.reason, uneven.permanent], ["heads_indivisible", true]);
    match(uneven.message, /Cannot start vllm: the model's 28 attention heads .* tp 8/);
    await Deno.writeTextFile(join(source, "model.safetensors"), "x".repeat(100));
    const pointer = await of({});
    equal(pointer.reason, "model_file_damaged");
    await Deno.writeTextFile(join(source, "model.safetensors"), "x".repeat(5_000));
    equal((await of({})).reason, "weights_do_not_fit");
  } finally {
    await Deno.remove(root, { recursive: true });
  }
});
