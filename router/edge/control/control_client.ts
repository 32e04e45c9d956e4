/**
 * The router's line to control: Watch, which says what there is, and Report, which says what this
 * router does with it. Both go to the same control, the first of the list that takes them. Without
 * any the router serves on from what it knows.
 */
import { type Client, createClient, type Transport } from "@connectrpc/connect";
import { formatRevision } from "@heddle/proto/revision";
import { RouterService, type WatchResponse } from "@heddle/proto/gen/router";
import { errorText, HeddleError } from "@heddle/proto/error";
import { fromRpc } from "@heddle/proto/error_code";
import { backoffMs } from "@heddle/common/backoff";
import { logger } from "@heddle/common/log";
import { readTlsFiles, type TlsFiles } from "@heddle/common/mtls_files";
import { connectRpc } from "@heddle/common/rpc_client";
import { delay, spawnTask } from "@heddle/common/task";
import { VERSION } from "@heddle/common/version";
import { triesInVain } from "../../core/fleet/reconnect.ts";
import { isStale, type Table, type TableUpdate } from "../../core/fleet/table.ts";
import { decodeWatch } from "./watch_message.ts";

const RECONNECT = { firstMs: 1_000, maxMs: 30_000 } as const;

/**
 * How often the whole list may offer nothing but an older state before the older state counts: then
 * it is no leader that was deposed, but a control that was restored from a backup.
 */
const STALE_ROUNDS_MAX = 3;

const WAKE_TIMEOUT_MS = 5_000;
/** One wake for a model in so long, however many requests ask for it. */
const WAKE_INTERVAL_MS = 5_000;

/** Who keeps the table. */
export interface Routing {
  readonly watched: Table;
  apply(update: TableUpdate): void;
  /** The stream broke off: chunks of an unfinished snapshot are void. */
  forgetPending(): void;
}

/** Who keeps keys, limits and prices. */
export interface TenancySink {
  apply(message: WatchResponse): void;
  /** Others need what this router does not use of these scopes. */
  recall(scopeIds: readonly string[]): void;
  forgetPending(): void;
}

export interface ControlClientOptions {
  /** "host/1" */
  readonly name: string;
  /** Changes when the router restarts. */
  readonly instance: string;
  readonly urls: readonly string[];
  readonly tls: TlsFiles | undefined;
  readonly routing: Routing;
  readonly tenancy: TenancySink;
  /** Control has just confirmed that the table is right. */
  readonly onConfirmed: () => void;
  /** Runs beside each stream, over its connection, until `signal` aborts. Never rejects. */
  readonly beside: (transport: Transport, signal: AbortSignal) => Promise<void>;
}

export type ControlRpc = Client<typeof RouterService>;

export class ControlClient {
  readonly #options: ControlClientOptions;
  readonly #log = logger("router", "control");
  readonly #wokenAt = new Map<string, number>();
  #rpc: ControlRpc | undefined;
  #staleStreams = 0;

  constructor(options: ControlClientOptions) {
    this.#options = options;
  }

  /** The control that is being watched; undefined while none is. */
  get rpc(): ControlRpc | undefined {
    return this.#rpc;
  }

  /** Watches one control after the other until `stop` aborts. */
  async run(stop: AbortSignal): Promise<void> {
    const { name, urls } = this.#options;
    let failures = 0;
    while (!stop.aborted) {
      const url = urls[failures % urls.length];
      if (url === undefined) return;
      const stale = this.#staleStreams;
      const heard = await this.#watch(url, stop);
      const watched = heard ? "heard" : this.#staleStreams > stale ? "stale" : "failed";
      failures = triesInVain(failures, watched, this.#staleStreams);
      if (stop.aborted) return;
      // An address that was not tried yet costs nothing; a round through all of them waits.
      if (!heard && failures % urls.length !== 0) continue;
      const round = Math.max(1, Math.ceil(failures / urls.length));
      await delay(backoffMs(name, round, RECONNECT), stop);
    }
  }

  /** Asks control to start a sleeping model. Never throws: the request that asked waits anyway. */
  async wake(model: string, now: number): Promise<void> {
    if (now - (this.#wokenAt.get(model) ?? -Infinity) < WAKE_INTERVAL_MS) return;
    this.#wokenAt.set(model, now);
    try {
      const answer = await this.#rpc?.wake({ router: this.#options.name, model }, {
        timeoutMs: WAKE_TIMEOUT_MS,
      });
      if (answer?.accepted === true) return;
      const why = answer === undefined ? "control is away" : answer.detail || answer.reason;
      this.#log.warning("Cannot wake a model", { model, why });
    } catch (error) {
      this.#log.warning("Cannot wake a model", { model, why: errorText(error) });
    }
  }

  /** Follows one stream to its end. True when control said anything on it. */
  async #watch(url: string, stop: AbortSignal): Promise<boolean> {
    const { name, instance, routing, tenancy } = this.#options;
    let heard = false;
    const over = new AbortController();
    let connection: ReturnType<typeof connectRpc> | undefined;
    try {
      const { tls } = this.#options;
      // Read anew for each connection: certificates are renewed under way.
      const material = tls === undefined ? undefined : await readTlsFiles(tls);
      connection = connectRpc({ url, tls: material });
      const rpc = createClient(RouterService, connection.transport);
      const stream = rpc.watch({
        router: name,
        routerVersion: VERSION,
        routerInstance: instance,
      }, { signal: stop });
      for await (const message of stream) {
        if (message.recalledScopes.length > 0) {
          tenancy.recall(message.recalledScopes);
          continue;
        }
        const { update, problems } = decodeWatch(message);
        if (!heard) {
          this.#begin(url, update);
          this.#runBeside(connection.transport, AbortSignal.any([stop, over.signal]));
        }
        heard = true;
        for (const problem of problems) this.#log.error(problem);
        routing.apply(update);
        tenancy.apply(message);
        this.#rpc = rpc;
        this.#options.onConfirmed();
      }
      this.#log.warning("Control ended the stream", { url });
    } catch (error) {
      if (!stop.aborted) {
        this.#log.warning(fromRpc(error, `Cannot watch control at ${url}`).message);
      }
    } finally {
      this.#rpc = undefined;
      routing.forgetPending();
      over.abort();
      tenancy.forgetPending();
      connection?.close();
    }
    return heard;
  }

  #runBeside(transport: Transport, signal: AbortSignal): void {
    spawnTask("beside watch", () => this.#options.beside(transport, signal), signal);
  }

  #begin(url: string, update: TableUpdate): void {
    const { routing, urls } = this.#options;
    if (isStale(routing.watched, update)) {
      this.#staleStreams++;
      if (this.#staleStreams <= STALE_ROUNDS_MAX * urls.length) {
        throw new HeddleError(
          "failed_precondition",
          `Cannot follow control at ${url}: it is at revision ${
            formatRevision(update.revision)
          }, and this router has ${formatRevision(routing.watched.revision)} already`,
        );
      }
      this.#log.warning("Taking an older state: no control has a newer one", {
        url,
        revision: formatRevision(update.revision),
      });
    }
    this.#staleStreams = 0;
    this.#log.info("Watching control", { url, revision: formatRevision(update.revision) });
  }
}
