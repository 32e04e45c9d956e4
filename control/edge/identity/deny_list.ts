/**
 * What was struck, as this control knows it. One that leads has it in its world. One that stands by
 * has no world, and lets in nobody all the same who was struck: it reads the list from the store that
 * all controls share, and has it when it takes over.
 */
import { logger } from "@heddle/common/log";
import { delay } from "@heddle/common/task";
import { errorText } from "@heddle/proto/error";
import type { Strike } from "../../core/world.ts";

const log = logger("control", "certificates");

/** How much later than the one that leads a standby may know of a strike. */
const READ_MS = 2_000;

type Struck = ReadonlyMap<string, Strike>;

export interface DenyListOptions {
  readonly store: { struck(): Promise<Struck> };
  /** What the world says; undefined while this control stands by. */
  readonly leading: () => Struck | undefined;
}

export class DenyList {
  readonly #options: DenyListOptions;
  #known: Struck = new Map();
  #saidUnread = false;
  readonly #heeding = new Set<() => void>();

  constructor(options: DenyListOptions) {
    this.#options = options;
  }

  get struck(): Struck {
    const leading = this.#options.leading();
    if (leading !== undefined) this.#known = leading;
    return this.#known;
  }

  /** Has `heed` called whenever more was struck; what is returned ends that. */
  onChange(heed: () => void): () => void {
    this.#heeding.add(heed);
    return () => void this.#heeding.delete(heed);
  }

  /** More was struck, by the one that leads. */
  changed(): void {
    for (const heed of [...this.#heeding]) heed();
  }

  /** All that is struck, at once, and again whenever more is, until `signal` aborts. */
  async *watch(signal: AbortSignal): AsyncGenerator<Struck> {
    let wake = Promise.withResolvers<void>();
    const off = this.onChange(() => wake.resolve());
    const end = () => wake.resolve();
    signal.addEventListener("abort", end);
    try {
      while (!signal.aborted) {
        // Before it is told: what changes meanwhile must be told too.
        wake = Promise.withResolvers();
        yield this.struck;
        if (!signal.aborted) await wake.promise;
      }
    } finally {
      off();
      signal.removeEventListener("abort", end);
    }
  }

  /** Reads the store, unless this control leads. Never rejects: what was known before stays. */
  async read(): Promise<void> {
    const { store, leading } = this.#options;
    const before = this.struck;
    if (leading() !== undefined) return;
    try {
      const struck = await store.struck();
      this.#known = struck;
      this.#saidUnread = false;
      if ([...struck.keys()].some((subject) => !before.has(subject))) this.changed();
    } catch (error) {
      if (this.#saidUnread) return;
      this.#saidUnread = true;
      log.warning("Cannot read what was struck; what is known of it goes on counting", {
        reason: errorText(error),
      });
    }
  }

  /** Reads again and again until `signal` aborts. Never rejects. */
  async follow(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await delay(READ_MS, signal);
      if (!signal.aborted) await this.read();
    }
  }
}
