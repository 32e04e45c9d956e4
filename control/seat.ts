/** Whether this control leads, and what answers for it while it does. */
import { logger } from "@heddle/common/log";
import { delay, spawnTask } from "@heddle/common/task";
import { formatAddress } from "@heddle/common/address";
import { errorText, HeddleError } from "@heddle/proto/error";
import type { Settings } from "./config.ts";
import type { Leader } from "./core/lease/claim.ts";
import type { Realm } from "./edge/caller.ts";
import type { ControlMetrics } from "./edge/control_metrics.ts";
import { Elector, type Standing } from "./edge/lease/elector.ts";
import { leaseClock } from "./edge/lease/lease_clock.ts";
import { refusal, type RefusalCode, whoLeads } from "./edge/lease/standby.ts";
import type { Store } from "./edge/store/store.ts";
import { lead, type Leadership } from "./leadership.ts";

const log = logger("control", "lease");

/** Before the store is read again when it did not answer a control that has just been told to lead. */
const READ_AGAIN_MS = 1_000;

export interface SeatOptions {
  readonly settings: Settings;
  /** What every node is to have now; undefined: no word on engines. */
  readonly engines: () => Settings["engines"];
  readonly realm: Realm;
  readonly store: Store;
  readonly metrics: () => ControlMetrics;
}

export class Seat {
  readonly #options: SeatOptions;
  readonly #elector: Elector;
  readonly #stop = new AbortController();
  readonly #failed = Promise.withResolvers<never>();
  #running: Promise<void> | undefined;
  #leadership: Leadership | undefined;
  /** Counts what was won and lost, so that what took long knows that it is too late. */
  #turns = 0;
  #beginning: Promise<void> = Promise.resolve();
  #ending: Promise<void> = Promise.resolve();

  constructor(options: SeatOptions) {
    this.#options = options;
    const { settings, store } = options;
    this.#elector = new Elector({
      store,
      claim: {
        holder: crypto.randomUUID(),
        name: settings.name,
        address: reachable(settings.admin),
        leaseMs: settings.leaseMs,
      },
      clock: leaseClock(() => performance.now(), Date.now),
      onWon: (term) => this.#begin(term),
      onLost: (by) => this.#end(this.#deposed(by)),
    });
    // Whoever waits for it gets it all the same.
    this.#failed.promise.catch(() => {});
  }

  /**
   * Claims, and begins to lead when that is granted; otherwise stands by, and goes on claiming until
   * stopped. Throws when it leads and what is stored cannot be acted on, or the store is not one
   * for this version.
   */
  async open(): Promise<void> {
    await this.#elector.claim();
    this.#running = this.#elector.run(this.#stop.signal).catch((error) => this.#fail(error));
    await this.#beginning;
    if (this.#leadership === undefined) log.info(this.#says(), { control: this.name });
    this.#beginning.catch((error) => this.#fail(error));
  }

  /** Rejects when this control can go on neither leading nor standing by. */
  get failed(): Promise<never> {
    return this.#failed.promise;
  }

  get name(): string {
    return this.#options.settings.name;
  }

  get standing(): Standing {
    return this.#elector.standing;
  }

  /** Undefined while this control stands by. */
  get leadership(): Leadership | undefined {
    return this.#leadership;
  }

  /** What answers; throws, with that code, who leads instead. */
  demand(code: RefusalCode): Leadership {
    if (this.#leadership === undefined) throw refusal(this.name, this.standing, code);
    return this.#leadership;
  }

  /**
   * Claims at once: what is stored may have become other than it was, and then a new time of leading
   * begins with it. Resolves when that has begun.
   */
  async renew(): Promise<void> {
    await this.#elector.claim();
    await this.#beginning;
  }

  /** Ends every stream with `reason`, then gives back the lease, so that another can lead at once. */
  async stop(reason: HeddleError): Promise<void> {
    this.#stop.abort();
    this.#end(reason);
    await this.#running;
    await this.#elector.resign();
    await this.#beginning.catch(() => {});
    await this.#ending;
  }

  #begin(term: number): void {
    const turn = ++this.#turns;
    if (this.#stop.signal.aborted) return;
    this.#beginning = this.#lead(term, turn);
    if (this.#running !== undefined) this.#beginning.catch((error) => this.#fail(error));
  }

  async #lead(term: number, turn: number): Promise<void> {
    const { metrics, ...part } = this.#options;
    const mine = () => turn === this.#turns;
    const sure = () => mine() && this.#elector.sure();
    while (mine()) {
      try {
        const leadership = await lead({ ...part, metrics: metrics(), term, sure });
        if (mine()) this.#leadership = leadership;
        else await leadership.end(this.#deposed(undefined));
        return;
      } catch (error) {
        if (!(error instanceof HeddleError) || error.code !== "system") throw error;
        log.warning("Cannot begin to lead; trying again", { reason: errorText(error) });
        await delay(READ_AGAIN_MS, this.#stop.signal);
      }
    }
  }

  #end(reason: HeddleError): void {
    this.#turns++;
    const leadership = this.#leadership;
    this.#leadership = undefined;
    if (leadership === undefined) return;
    log.info("Leading no more", { reason: reason.message });
    // It decides nothing from this moment; only its streams take time to end.
    this.#ending = leadership.end(reason);
    spawnTask("end of leading", () => this.#ending);
  }

  #deposed(by: Leader | undefined): HeddleError {
    const who = by === undefined ? "" : `: control "${by.name}" does`;
    return new HeddleError("unavailable", `Control "${this.name}" does not lead any more${who}`);
  }

  #says(): string {
    return `Standing by: ${whoLeads(this.standing)}`;
  }

  #fail(error: unknown): void {
    this.#failed.reject(error);
  }
}

/** Empty for a control that listens everywhere: it cannot know under which name it is reached. */
function reachable(listen: Settings["admin"]): string {
  return listen.host === "0.0.0.0" || listen.host === "::" ? "" : formatAddress(listen);
}
