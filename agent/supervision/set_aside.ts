/** Puts folders of shards that cannot be used out of the way, so that they are told of once. */
import { logger } from "@heddle/common/log";
import { errorText } from "@heddle/proto/error";
import type { ShardStore, Unusable } from "../edge/shard_store.ts";

const log = logger("agent", "supervisor");

export interface Corrupt {
  readonly shardId: string;
  readonly why: string;
  /** Where what is left of it lies. */
  readonly kept: string;
}

/** What ran of them must have been stopped before. Never rejects. */
export async function setAside(
  corrupt: readonly Unusable[],
  store: ShardStore,
): Promise<readonly Corrupt[]> {
  const kept: Corrupt[] = [];
  for (const each of corrupt) {
    const { shardId, why, directory } = each;
    // One that cannot be moved is told of again by the next agent.
    const place = await store.setAside(each).catch((error: unknown) => {
      log.warning("Cannot put the folder of a shard aside", { directory, why: errorText(error) });
      return directory;
    });
    log.error("The state of a shard was corrupt; what ran of it was stopped", {
      shard: shardId,
      why,
      kept: place,
    });
    kept.push({ shardId, why, kept: place });
  }
  return kept;
}
