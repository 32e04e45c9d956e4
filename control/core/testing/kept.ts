/** What a simulated control has stored, and a backup of it. */
import type { EpochMs } from "../ids.ts";
import { failureRecords } from "../deciding/failures.ts";
import type { StoreRecord } from "../store_record.ts";
import { NO_DECISIONS, type Remembered, startWorld, type World } from "../world.ts";

export class Kept {
  #remembered: Remembered;
  #backup: Remembered | undefined;
  #starts = 0;

  constructor(remembered: Remembered) {
    this.#remembered = remembered;
  }

  get remembered(): Remembered {
    return this.#remembered;
  }

  /** A world from what is stored, in a term that is stored before it acts. */
  begin(now: EpochMs): World {
    const world = startWorld({ ...this.#remembered, salt: `s${++this.#starts}x` }, now);
    this.#remembered = { ...this.#remembered, storedTerm: world.term };
    return world;
  }

  persist(records: readonly StoreRecord[], { knownNodes, decisions, catalog }: World): void {
    for (const each of records) {
      if (each.kind !== "term") continue;
      this.#remembered = { ...this.#remembered, storedTerm: each.term };
    }
    this.#remembered = { ...this.#remembered, knownNodes, decisions, catalog };
  }

  /** What happened, as the loop stores it behind the decisions. */
  remember({ models }: World): void {
    const failures = new Map(this.#remembered.failures);
    for (const record of failureRecords(failures, models)) {
      if (record.failures === undefined) failures.delete(record.model);
      else failures.set(record.model, record.failures);
    }
    this.#remembered = { ...this.#remembered, failures };
  }

  loseTerm(): void {
    this.#remembered = { ...this.#remembered, storedTerm: 0 };
  }

  /** Nothing is left but the catalog of control's file. */
  lose(): void {
    const { catalog } = this.#remembered.catalog;
    this.#remembered = {
      ...this.#remembered,
      storedTerm: 0,
      catalog: { catalog, text: "", revision: 1 },
      knownNodes: new Set(),
      decisions: NO_DECISIONS,
      failures: new Map(),
    };
  }

  backUp(): void {
    this.#backup = this.#remembered;
  }

  /** False when there is no backup. */
  restore(): boolean {
    if (this.#backup === undefined) return false;
    this.#remembered = this.#backup;
    return true;
  }
}
