/**
 * Everything of tenancy that a router keeps: the book of keys and limits that control sends, its
 * copy on disk, what has been used of the limits, and the ledger of what was used.
 */
import type { WatchResponse } from "@heddle/proto/gen/router";
import type { UsageRecord as WireRecord } from "@heddle/proto/gen/tenancy";
import { fromRpc } from "@heddle/proto/error_code";
import { logger } from "@heddle/common/log";
import { spawnTask } from "@heddle/common/task";
import { Limiter } from "../core/limits/limiter.ts";
import type { UsageRecord } from "../core/request/usage_record.ts";
import { ANONYMOUS } from "../core/request/caller.ts";
import { Book } from "../core/tenancy/book.ts";
import type { BookTrust } from "../edge/client/keys.ts";
import type { ControlRpc, TenancySink } from "../edge/control/control_client.ts";
import { encodeRecord } from "../edge/ledger/encode_record.ts";
import { Ledger } from "../edge/ledger/ledger.ts";
import { LedgerFolder } from "../edge/ledger/ledger_file.ts";
import type { TenancyPresent } from "../edge/observe/tenancy_metrics.ts";
import { aged } from "../edge/tenancy/folded_tenancy.ts";
import { ShareClient } from "../edge/tenancy/share_client.ts";
import { TenancyFile } from "../edge/tenancy/tenancy_file.ts";
import { decodeTenancy, isTenancy } from "../edge/tenancy/tenancy_message.ts";
import type { Settings } from "../settings/settings.ts";
import { Limits } from "./limits.ts";
import { OwnAccount } from "./own_account.ts";

/** A batch that takes longer is sent again, and counts once. */
const RECORD_MS_MAX = 10_000;
/** At the end, control gets so long to take what is left; it is on disk already. */
const LAST_RECORDS_MS_MAX = 3_000;

/** What of control tenancy needs, once the line to it is there. */
export interface ControlLine {
  readonly rpc: () => ControlRpc | undefined;
  /** Since control last confirmed what is known; undefined when it never did. */
  readonly ageMs: () => number | undefined;
}

/** Who this router is. */
export interface TenancyIdentity {
  readonly name: string;
  readonly instance: string;
  /** Longest wait of a request for a share of a limit. @default 100 ms */
  readonly shareWaitMs?: number | undefined;
  /** The same, for control's first word on that limit. @default 1 s */
  readonly firstShareWaitMs?: number | undefined;
}

export class Tenancy implements TenancySink {
  readonly book = new Book();
  readonly limiter = new Limiter((id) => this.book.scope(id));
  readonly limits: Limits;
  readonly trust: BookTrust;
  readonly ledger: Ledger;
  readonly own: OwnAccount;
  readonly #settings: Settings;
  readonly #now: () => number;
  readonly #log = logger("router", "tenancy");
  readonly #file: TenancyFile;
  readonly #shares: ShareClient;
  readonly #stop = new AbortController();
  #line: ControlLine = { rpc: () => undefined, ageMs: () => undefined };
  #running: Promise<void> = Promise.resolve();

  constructor(settings: Settings, identity: TenancyIdentity, now: () => number) {
    this.#settings = settings;
    this.#now = now;
    this.#file = new TenancyFile(settings.stateDirectory);
    const rpc = () => this.#line.rpc();
    this.#shares = new ShareClient({ ...identity, limiter: this.limiter, rpc, now });
    if (settings.control !== undefined) this.limiter.share({ kind: "shared" });
    this.limits = new Limits({
      limiter: this.limiter,
      price: (model) => this.book.price(model),
      shares: settings.control === undefined ? undefined : this.#shares,
      now,
    });
    this.own = new OwnAccount({ limiter: this.limiter, router: identity.name, rpc, now });
    this.trust = {
      connected: () => rpc() !== undefined,
      stale: () => this.stale(),
      now: () => Date.now(),
    };
    this.ledger = new Ledger({
      folder: new LedgerFolder(`${settings.stateDirectory}/ledger`),
      bytesMax: settings.ledgerMaxBytes,
      connected: () => rpc() !== undefined,
      send: (records) => this.#record(identity.name, records),
      onRecorded: (records) => this.#charged(records, "recorded"),
      onFound: (records) => this.#charged(records, "found"),
    });
  }

  /** Reads what an earlier run left on disk. Before control is followed. */
  async load(): Promise<void> {
    if (this.#settings.control === undefined) return;
    for await (const { message, receivedAtMs } of this.#file.load()) {
      const ageMs = Date.now() - receivedAtMs;
      const scopes = message.scopes.map((scope) => aged(scope, ageMs));
      this.#take({ ...message, scopes });
    }
    await this.ledger.load();
  }

  /** Follows control from now on. */
  start(line: ControlLine): void {
    this.#line = line;
    if (this.#settings.control === undefined) return;
    const { signal } = this.#stop;
    spawnTask("shares", () => this.#shares.run(signal), signal);
    this.#running = this.ledger.run(signal);
    spawnTask("ledger", () => this.#running);
  }

  apply(message: WatchResponse): void {
    if (!isTenancy(message)) return;
    this.#take(message);
    this.#file.save(message, Date.now());
  }

  recall(scopeIds: readonly string[]): void {
    this.#shares.recall(scopeIds);
  }

  forgetPending(): void {
    this.book.forgetPending();
    this.#file.forgetPending();
  }

  /** Why keys are not taken for good ones any more; undefined while they are. */
  stale(): string | undefined {
    const { cutOff } = this.#settings.keys;
    if (cutOff === undefined || this.#line.rpc() !== undefined) return undefined;
    const ageMs = this.#line.ageMs();
    if (ageMs !== undefined && ageMs <= cutOff.afterMs) return undefined;
    return "This router has not heard from control for too long to tell good keys from revoked ones";
  }

  /**
   * Puts the record of a request that has ended into the ledger. Who was to show a key and showed none
   * that is known leaves none: it could fill every disk.
   */
  account(record: UsageRecord): void {
    if (this.#settings.control === undefined) return;
    const known = record.key !== undefined || this.#settings.keys.policy === "open" ||
      record.caller !== ANONYMOUS.id;
    if (known) this.ledger.add(encodeRecord(record));
  }

  /** For the metrics. */
  present(): TenancyPresent {
    return {
      keys: this.book.keys,
      reservedTokens: this.limiter.reservedTokens,
      scopes: this.limiter.states.size,
      ledgerBytes: this.ledger.bytes,
      ledgerUnwritten: this.ledger.unwritten,
      ledgerLost: this.ledger.lost,
    };
  }

  /** Writes what is still to be written, and lets control have what it can take at once. */
  async stop(): Promise<void> {
    this.#stop.abort();
    await this.#running;
    await within(LAST_RECORDS_MS_MAX, this.ledger.flush());
    await this.#file.flush();
  }

  #take(message: WatchResponse): void {
    const now = this.#now();
    const { update, problems } = decodeTenancy(message, now);
    for (const problem of problems) this.#log.error(problem);
    const changed = this.book.apply(update);
    if (changed === undefined) return;
    for (const id of changed === "all" ? [...this.limiter.states.keys()] : changed) {
      this.limiter.changed(id, now);
    }
  }

  async #record(router: string, records: readonly WireRecord[]): Promise<void> {
    const rpc = this.#line.rpc();
    if (rpc === undefined) throw new Error("control is away");
    try {
      await rpc.recordUsage({ router, records: [...records] }, { timeoutMs: RECORD_MS_MAX });
    } catch (error) {
      throw fromRpc(error, "Cannot bring usage records to control");
    }
  }

  /** Budgets know what was spent here from the request on, and forget it once control knows it. */
  #charged(records: readonly WireRecord[], what: "found" | "recorded"): void {
    const now = this.#now();
    for (const { scopeIds, costMicro } of records) {
      const micro = Number(costMicro);
      if (micro === 0) continue;
      for (const id of scopeIds) {
        const state = this.limiter.state(id, now);
        if (state?.scope.budget === undefined) continue;
        if (what === "found") state.charge(micro);
        else state.recorded(micro, now);
      }
    }
  }
}

async function within(ms: number, work: Promise<void>): Promise<void> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<void>((resolve) => timer = setTimeout(resolve, ms));
  await Promise.race([work, late]);
  clearTimeout(timer);
}
