import { deepEqual, equal } from "node:assert/strict";
import { forgettable, KEEP_ENDED_MS } from "./retention.ts";
import { aShard } from "./shard_fake.ts";

Deno.test("forgettable() names what ended long ago, and the oldest of too many", () => {
  const at = (since: number, shardId: string) => ({
    ...aShard("failed", { spec: { shardId } }),
    since,
  });
  const running = aShard("ready", { spec: { shardId: "runs" } });
  deepEqual(forgettable([at(0, "old"), at(5, "new"), running], KEEP_ENDED_MS), ["old"]);
  const many = Array.from({ length: 40 }, (_, index) => at(index, `s${index}`));
  const gone = forgettable([...many, running], 100);
  equal(gone.length, 8);
  deepEqual([...gone].sort(), ["s0", "s1", "s2", "s3", "s4", "s5", "s6", "s7"]);
});
