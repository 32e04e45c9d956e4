import { deepEqual, equal, match, ok } from "node:assert/strict";
import { acceptStart, acceptStop, type Node } from "./accept.ts";
import type { ShardSpec, StateKind } from "./shard/shard.ts";
import { aShard, aSpec } from "./shard/shard_fake.ts";

const GPU = { index: 0, uuid: "GPU-a" };

function node(changes: Partial<Node> = {}): Node {
  return {
    highest: { term: 3, sequence: 5 },
    shards: new Map(),
    unreadable: [],
    gpus: new Map([[0, "GPU-a"], [1, "GPU-b"]]),
    ports: { first: 20_000, last: 31_999 },
    ...changes,
  };
}

function holding(kind: StateKind, spec: Partial<ShardSpec> = {}): Node {
  const shard = { ...aShard(kind, { spec }), revision: { term: 3, sequence: 5 } };
  return node({ shards: new Map([[shard.spec.shardId, shard]]) });
}

function start(spec: Partial<ShardSpec>, revision: [number, number], on: Node) {
  const [term, sequence] = revision;
  return acceptStart({ spec: aSpec(spec), revision: { term, sequence } }, on);
}

function reason(verdict: ReturnType<typeof acceptStart>): string {
  return verdict.kind === "refused" ? verdict.reason : verdict.kind;
}

Deno.test("acceptStart() starts what fits", () => {
  deepEqual(start({ gpus: [GPU] }, [3, 6], node()), { kind: "start" });
});

Deno.test("acceptStart() and acceptStop() refuse a leader that was replaced", () => {
  equal(reason(start({}, [2, 99], node())), "stale_revision");
  const stop = acceptStop({ shardId: "r1/0", revision: { term: 2, sequence: 99 } }, node());
  equal(reason(stop), "stale_revision");
});

Deno.test("within a term each shard has its own order: a command sent again late is not stale", () => {
  equal(reason(start({ shardId: "other" }, [3, 2], node())), "start");
  equal(reason(start({}, [3, 4], holding("ready"))), "stale_revision");
  const late = acceptStop(
    { shardId: "r1/0", revision: { term: 3, sequence: 4 } },
    holding("ready"),
  );
  equal(reason(late), "stale_revision");
});

Deno.test("acceptStart() does the same command twice once", () => {
  for (const kind of ["preparing", "loading", "ready", "stopping", "stopped", "failed"] as const) {
    equal(reason(start({}, [3, 5], holding(kind))), "done", kind);
  }
});

Deno.test("acceptStart() takes a newer revision of what runs for the same wish", () => {
  equal(reason(start({}, [4, 1], holding("ready"))), "done");
  equal(reason(start({ fingerprint: "f2" }, [4, 1], holding("ready"))), "shard_exists");
  equal(reason(start({ attempt: 2 }, [4, 1], holding("ready"))), "shard_exists");
  equal(reason(start({}, [4, 1], holding("stopping"))), "shard_exists");
});

Deno.test("acceptStart() starts again what has ended", () => {
  for (const kind of ["stopped", "failed"] as const) {
    equal(reason(start({ attempt: 2 }, [3, 6], holding(kind))), "start");
  }
});

Deno.test("acceptStart() never gives a GPU twice, and names who holds it", () => {
  const verdict = start(
    { shardId: "new", gpus: [GPU], portFirst: 21_000 },
    [3, 6],
    holding("draining", { gpus: [GPU] }),
  );
  ok(verdict.kind === "refused");
  equal(verdict.reason, "gpu_in_use");
  match(verdict.detail, /GPU 0 \(GPU-a\) is held by r1\/0/);
  const freed = start(
    { shardId: "new", gpus: [GPU], portFirst: 21_000 },
    [3, 6],
    holding("failed", { gpus: [GPU] }),
  );
  equal(freed.kind, "start");
});

Deno.test("acceptStart() counts the GPUs of shards that it cannot read", () => {
  const on = node({ unreadable: [{ shardId: "old", spec: aSpec({ gpus: [GPU] }) }] });
  equal(reason(start({ gpus: [GPU], portFirst: 21_000 }, [3, 6], on)), "gpu_in_use");
  equal(reason(start({ shardId: "old" }, [3, 6], on)), "state_unreadable");
  const stop = acceptStop({ shardId: "old", revision: { term: 3, sequence: 6 } }, on);
  equal(reason(stop), "state_unreadable");
});

Deno.test("acceptStart() refuses GPUs that are not where control thinks", () => {
  const swapped = [{ index: 1, uuid: "GPU-a" }];
  equal(reason(start({ gpus: swapped }, [3, 6], node())), "gpu_missing");
  equal(
    reason(start({ gpus: [{ index: 7, uuid: "GPU-x" }] }, [3, 6], node())),
    "gpu_missing",
  );
  const unseen = node({ gpus: undefined });
  equal(reason(start({ gpus: [GPU] }, [3, 6], unseen)), "start", "nothing is known yet");
});

Deno.test("acceptStart() keeps blocks of ports apart and inside the node's range", () => {
  const on = holding("ready", { portFirst: 20_000, portCount: 256 });
  equal(reason(start({ shardId: "n", portFirst: 20_255 }, [3, 6], on)), "ports_in_use");
  equal(reason(start({ shardId: "n", portFirst: 20_256 }, [3, 6], on)), "start");
  equal(reason(start({ portFirst: 19_999 }, [3, 6], node())), "ports_out_of_range");
  equal(reason(start({ portFirst: 31_900 }, [3, 6], node())), "ports_out_of_range");
});

Deno.test("acceptStart() refuses a spec that makes no sense, and says which number is wrong", () => {
  const cases: [Partial<ShardSpec>, RegExp][] = [
    [{ shardId: "" }, /shard_id/],
    [{ shardId: "x".repeat(201) }, /201/],
    [{ model: "" }, /model/],
    [{ engine: "" }, /engine/],
    [{ rank: 1 }, /rank 1 is not below shard_count 1/],
    [{ portCount: 0 }, /port_count/],
    [{ shardCount: 2, leaderAddress: "" }, /leader_address/],
    [{ gpus: [GPU, GPU] }, /GPU-a is given twice/],
  ];
  for (const [spec, words] of cases) {
    const verdict = start(spec, [3, 6], node());
    ok(verdict.kind === "refused" && verdict.reason === "invalid_spec");
    match(verdict.detail, words);
  }
});

Deno.test("acceptStop() of what is not here is done already", () => {
  const verdict = acceptStop({ shardId: "gone", revision: { term: 3, sequence: 6 } }, node());
  deepEqual(verdict, { kind: "done" });
});
