/** Layouts that together make an adapter say all that it can, and what it says of one. */
import type { ShardSpec } from "../core/shard/shard.ts";
import { aSpec } from "../core/shard/shard_fake.ts";
import { adapterOf } from "./adapters.ts";

export const LAYOUTS: readonly Partial<ShardSpec>[] = [
  { tp: 2 },
  { tp: 1, dp: 2 },
  { tp: 8, pp: 2, shardCount: 2 },
  { tp: 8, pp: 2, shardCount: 2, rank: 1 },
  { tp: 2, dp: 4, shardCount: 2 },
  { tp: 2, dp: 4, shardCount: 2, rank: 1 },
  { tp: 2, dp: 4, shardCount: 2, launchMode: "ray" },
  { source: "/models/m.gguf", gpus: [{ index: 0, uuid: "GPU-a" }] },
];

export interface Installed {
  readonly engine: string;
  readonly version: string;
}

export function buildFor({ engine, version }: Installed, layout: Partial<ShardSpec>) {
  return adapterOf(engine)?.build({
    spec: aSpec({ engine, source: "/models/m.gguf", portCount: 256, ...layout }),
    engine: { name: engine, path: `/opt/${engine}/bin/python3`, version },
    address: "10.0.0.1",
    apiKey: (layout.rank ?? 0) === 0 ? "sk-heddle-replica-key" : "",
    modelDirs: [],
  });
}
