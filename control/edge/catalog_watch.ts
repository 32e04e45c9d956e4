/**
 * Follows the catalog's file. A change that is valid is handed to the loop; one that is not changes
 * nothing and says where it is wrong. Wakes by the folder's events and by period: an event can be
 * missed, and a text that has to wait is judged again.
 *
 * Only a change counts. What an operator applied since, or another control while it led, is newer
 * than a file that nobody has touched: acting on that file would take a catalog back.
 */
import { dirname } from "node:path";
import { errorText } from "@heddle/proto/error";
import { formatComplaints } from "@heddle/common/config_file";
import { logger } from "@heddle/common/log";
import { delay, spawnTask } from "@heddle/common/task";
import { type Catalog, parseCatalog } from "../core/catalog.ts";
import type { CatalogVerdict } from "../core/catalog/judge_catalog.ts";
import type { CatalogApplied } from "../core/event.ts";
import type { CatalogState } from "../core/world.ts";
import { catalogHash } from "./store/catalog_hash.ts";

const log = logger("control", "catalog");

/** Editors and tools write a file in several steps within a few milliseconds. */
const DEBOUNCE_MS = 150;

/** How often the file is read though nothing was heard: for file systems without events. */
const PERIOD_MS = 30_000;

/** How often a text that waits is judged again: what it waits for, e.g. settling, takes seconds. */
const WAITING_PERIOD_MS = 2_000;

/** How the file stands against what is acted on. `superseded`: something newer was applied. */
export type CatalogFileState = "applied" | "superseded" | "waiting" | "invalid" | "unreadable";

/** The file, and why it is not acted on, in words for an operator; empty when it is. */
export interface CatalogFileStatus {
  readonly file: string;
  readonly state: CatalogFileState;
  readonly detail: string;
}

type Look = Pick<CatalogFileStatus, "state" | "detail">;

/** What is known of the file when this control begins to lead. */
export interface CatalogFilePast {
  /** Of the text that this control last dealt with; undefined when another has led since. */
  readonly seen: string | undefined;
  /** Hashes of all texts that were ever applied. */
  readonly applied: ReadonlySet<string>;
}

export interface CatalogWatchOptions {
  readonly file: string;
  readonly past: CatalogFilePast;
  readonly loop: { dispatch(event: CatalogApplied): Promise<void> };
  /** What is acted on now. */
  readonly current: () => CatalogState;
  readonly judge: (catalog: Catalog) => CatalogVerdict;
  /** Told the state after each look at the file. */
  readonly onState: (state: CatalogFileState) => void;
  /** Stores the hash of a text that has been dealt with. */
  readonly remember: (hash: string) => Promise<void>;
}

const APPLIED: Look = { state: "applied", detail: "" };

const OLDER_HELP = "change the file, or apply it with: heddle apply";

export class CatalogWatch {
  readonly #options: CatalogWatchOptions;
  /** What was last said in the log, so that it is said once and not at every look. */
  #said = "";
  #running: Promise<void> | undefined;
  #again = false;
  /** Before the first look nothing was read. */
  #last: Look = { state: "unreadable", detail: "it was not read yet" };
  /** Of the text that was last dealt with. */
  #seen: string | undefined;
  #remembered: string | undefined;
  #firstLook = true;
  #superseded = false;

  constructor(options: CatalogWatchOptions) {
    this.#options = options;
    this.#seen = options.past.seen;
    this.#remembered = options.past.seen;
  }

  /** Looks at the file now; resolves when what it says has been dealt with. Never rejects. */
  check(): Promise<void> {
    this.#again = true;
    this.#running ??= this.#drain();
    return this.#running;
  }

  /** An operator has applied another catalog: what the file holds now counts no more. */
  supersede(): Promise<void> {
    this.#superseded = true;
    return this.check();
  }

  /** How the file stood at the last look. */
  get status(): CatalogFileStatus {
    return { file: this.#options.file, ...this.#last };
  }

  /** Follows the file until `signal` aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const watcher = new FolderWatcher(dirname(this.#options.file), () => this.check());
    try {
      while (!signal.aborted) {
        watcher.reopen();
        await this.check();
        await delay(this.#last.state === "waiting" ? WAITING_PERIOD_MS : PERIOD_MS, signal);
      }
    } finally {
      watcher.close();
      await this.#running;
    }
  }

  // One look at a time; what changes during a look causes one more.
  async #drain(): Promise<void> {
    while (this.#again) {
      this.#again = false;
      this.#last = await this.#look();
      this.#firstLook = false;
      this.#options.onState(this.#last.state);
    }
    this.#running = undefined;
  }

  async #look(): Promise<Look> {
    const { file, current, judge } = this.#options;
    let text: string;
    try {
      text = await Deno.readTextFile(file);
    } catch (error) {
      const detail = errorText(error);
      this.#say(
        "unreadable",
        () =>
          log.error("Cannot read the catalog; the last applied one stays", {
            file,
            reason: detail,
          }),
      );
      return { state: "unreadable", detail };
    }
    const hash = catalogHash(text);
    if (text === current().text && current().revision > 0) {
      this.#say("applied", () => {});
      await this.#dealtWith(hash);
      return APPLIED;
    }
    const parsed = parseCatalog(text, file);
    if (parsed.kind === "invalid") {
      const detail = formatComplaints(parsed.complaints);
      this.#say(
        `invalid ${text}`,
        () => log.error(`The catalog is invalid; the last applied one stays:\n${detail}`),
      );
      return { state: "invalid", detail };
    }
    if (this.#isOld(hash)) {
      this.#say(
        `superseded ${text}`,
        () =>
          log.warning("The catalog file is older than the catalog that is acted on, which stays", {
            file,
            revision: current().revision,
            help: OLDER_HELP,
          }),
      );
      await this.#dealtWith(hash);
      return { state: "superseded", detail: `it is older than what is acted on: ${OLDER_HELP}` };
    }
    const verdict = judge(parsed.value);
    if (verdict.kind === "wait") {
      const { reason, detail } = verdict;
      const help = `apply it with: heddle apply ${file} --yes`;
      this.#say(
        `${reason} ${text}`,
        () => log.warning(`A new catalog waits: ${detail}`, { file, reason, help }),
      );
      return { state: "waiting", detail: `${detail}; ${help}` };
    }
    return await this.#apply(text, parsed.value);
  }

  #isOld(hash: string): boolean {
    const superseded = this.#superseded;
    this.#superseded = false;
    if (superseded || hash === this.#seen) return true;
    const { seen, applied } = this.#options.past;
    return this.#firstLook && seen === undefined && applied.has(hash);
  }

  async #apply(text: string, catalog: Catalog): Promise<Look> {
    const { file, current, loop } = this.#options;
    const revision = current().revision + 1;
    try {
      await loop.dispatch({ kind: "catalog_applied", catalog: { catalog, text, revision } });
    } catch (error) {
      this.#say(
        `unstored ${text}`,
        () => log.error("Cannot apply the catalog: it could not be stored", { file, error }),
      );
      return { state: "waiting", detail: `it could not be stored: ${errorText(error)}` };
    }
    this.#said = "applied";
    log.info("Catalog applied", { file, revision, models: catalog.models.length });
    await this.#dealtWith(catalogHash(text));
    return APPLIED;
  }

  async #dealtWith(hash: string): Promise<void> {
    this.#seen = hash;
    if (this.#remembered === hash) return;
    try {
      await this.#options.remember(hash);
      this.#remembered = hash;
    } catch (error) {
      // Asked again at the next look; it matters only at the next start.
      log.debug("Cannot store what the catalog file holds", { reason: errorText(error) });
    }
  }

  #say(what: string, say: () => void): void {
    if (this.#said === what) return;
    this.#said = what;
    say();
  }
}

/** Calls back, after a pause, when anything in a folder changes. */
class FolderWatcher {
  readonly #folder: string;
  readonly #changed: () => void;
  #watcher: Deno.FsWatcher | undefined;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #deaf = false;

  constructor(folder: string, changed: () => void) {
    this.#folder = folder;
    this.#changed = changed;
  }

  /** Watches anew: a folder that was replaced in the meantime sends nothing to its old watcher. */
  reopen(): void {
    this.#closeWatcher();
    try {
      const watcher = Deno.watchFs(this.#folder, { recursive: false });
      this.#watcher = watcher;
      this.#deaf = false;
      spawnTask("catalog folder", () => this.#follow(watcher));
    } catch (error) {
      if (this.#deaf) return;
      this.#deaf = true;
      log.warning("Cannot watch the catalog's folder; the file is read every 30 s", {
        folder: this.#folder,
        reason: errorText(error),
      });
    }
  }

  close(): void {
    this.#closeWatcher();
    clearTimeout(this.#timer);
  }

  // Not only the file's own events: what is linked or renamed in its folder can replace it.
  async #follow(watcher: Deno.FsWatcher): Promise<void> {
    for await (const event of watcher) {
      if (event.kind === "access") continue;
      clearTimeout(this.#timer);
      this.#timer = setTimeout(this.#changed, DEBOUNCE_MS);
    }
  }

  #closeWatcher(): void {
    this.#watcher?.close();
    this.#watcher = undefined;
  }
}
