/** A new catalog is acted on. */
import { findModel } from "../catalog.ts";
import { fingerprint } from "../catalog/fingerprint.ts";
import { CLEAN_RECORD } from "../deciding/draft.ts";
import type { EpochMs } from "../ids.ts";
import type { CatalogState, ModelRecord, World } from "../world.ts";

/** A model whose profiles changed starts with a clean record: what failed may be what was mended. */
export function observeCatalog(world: World, catalog: CatalogState, now: EpochMs): World {
  const models = new Map<string, ModelRecord>();
  for (const model of catalog.catalog.models) {
    const record = world.models.get(model.name) ?? CLEAN_RECORD;
    const kept = record.createdAt === undefined ? { ...record, createdAt: now } : record;
    models.set(model.name, changed(world, model.name, catalog) ? cleared(kept) : kept);
  }
  return { ...world, catalog, models };
}

/** Without its backoff and its blocked profiles; the next start is free. */
export function cleared(record: ModelRecord): ModelRecord {
  const { backoffUntil: _until, lastFailure: _failure, noRoom: _room, ...rest } = record;
  return { ...rest, failedStarts: 0, blocked: [] };
}

function changed(world: World, name: string, next: CatalogState): boolean {
  return prints(world.catalog, name) !== prints(next, name);
}

function prints(state: CatalogState, name: string): string {
  const model = findModel(state.catalog, name);
  return model === undefined ? "" : model.profiles.map((each) => fingerprint(model, each)).join();
}
