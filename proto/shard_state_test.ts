import { deepEqual, equal } from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { ShardStatusSchema } from "./gen/heddle/v1/types_pb.ts";
import type { Plain } from "./plain.ts";
import { decodeShardState, encodeShardState, type ShardState } from "./shard_state.ts";

const STATES: ShardState[] = [
  "preparing",
  "starting",
  "loading",
  "ready",
  "degraded",
  "draining",
  "stopping",
  "stopped",
  "failed",
];

Deno.test("decodeShardState(encodeShardState(x)) is x", () => {
  deepEqual(STATES.map((state) => decodeShardState(encodeShardState(state))), STATES);
});

Deno.test("decodeShardState() keeps what a newer peer says as unknown", () => {
  equal(decodeShardState(4711), "unknown");
  equal(decodeShardState(0), "unknown");
});

Deno.test("a generated message is assignable to its Plain", () => {
  const plain: Plain<ReturnType<typeof status>> = status();
  equal(plain.shardId, "s");
});

function status() {
  return create(ShardStatusSchema, { shardId: "s" });
}
