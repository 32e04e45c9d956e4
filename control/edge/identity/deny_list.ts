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
  /** Has the listeners look at their connections again. */
  readonly recheck: () => void;
}

export class DenyList {
  readonly #options: DenyListOptions;
  #known: Struck = new Map();
  #saidUnread = false;

  constructor(options: DenyListOptions) {
    this.#options = options;
  }

  get struck(): Struck {
    const leading = this.#options.leading();
    if (leading !== undefined) this.#known = leading;
    return this.#known;
  }

  /** Reads the store, unless this control leads. Never rejects: what was known before stays. */
  async read(): Promise<void> {
    const { store, leading, recheck } = this.#options;
    const before = this.struck;
    if (leading() !== undefined) return;
    try {
      const struck = await store.struck();
      this.#known = struck;
      this.#saidUnread = false;
      if ([...struck.keys()].some((subject) => !before.has(subject))) recheck();
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
