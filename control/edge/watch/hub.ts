/**
 * Gives every router the newest publication: a snapshot when it comes, deltas from then on. What
 * is sent is encoded once for all. A router that does not keep up loses its stream and comes back
 * for a snapshot: state that is replaced must not pile up.
 */
import { create } from "@bufbuild/protobuf";
import { HeddleError } from "@heddle/proto/error";
import { type WatchResponse, WatchResponseSchema } from "@heddle/proto/gen/router";
import { encodeRevision } from "@heddle/proto/revision";
import type { Published } from "../../core/published.ts";
import { BoundedQueue } from "../bounded_queue.ts";
import { deltaOf, snapshotOf } from "./delta.ts";
import { encodeOnce, withEncoded } from "./encoded.ts";
import {
  type EncodedPart,
  NOBODY,
  type TenancyChange,
  TenancyFeed,
  type TenancySource,
} from "./tenancy_feed.ts";

/** Publications that may wait for one router: four in a second of the fleet, and changes of keys. */
export const ROUTER_QUEUE_MAX = 64;

/** One publication: all its messages, or none. */
type Update = readonly WatchResponse[];

export class WatchHub {
  #published: Published;
  /** Of `#published`; made when the first router asks for it, and encoded as it is first sent. */
  #snapshot: Update | undefined;
  #encoded: WatchResponse[] = [];
  readonly #routers = new Map<BoundedQueue<Update>, string>();
  #tenancy = new TenancyFeed(NOBODY);

  constructor(published: Published) {
    this.#published = published;
  }

  /** How many routers watch. */
  get size(): number {
    return this.#routers.size;
  }

  /** Sends every router what changed. */
  publish(published: Published): void {
    const messages = deltaOf(this.#published, published).map(encodeOnce);
    this.#published = published;
    this.#snapshot = undefined;
    this.#encoded = [];
    this.#send(messages);
  }

  /** Sends every router what changed about keys, scopes and prices. */
  publishTenancy(change: TenancyChange): void {
    this.#tenancy.touch(change);
    // With 100,000 keys it matters that nothing is encoded for nobody.
    if (this.#routers.size === 0) return;
    const published = this.#published;
    this.#send(this.#tenancy.delta(change).map((part) => carrying(part, { published })));
  }

  /** From here on keys, scopes and prices are those of `source`. */
  serve(source: TenancySource, all: TenancyChange): void {
    this.#tenancy = new TenancyFeed(source);
    this.publishTenancy(all);
  }

  /** Asks routers for what they hold of these scopes and do not use. Those that are away are not asked. */
  recall(routers: ReadonlySet<string>, scopes: readonly string[]): void {
    const message = create(WatchResponseSchema, {
      revision: encodeRevision(this.#published.revision),
      settled: this.#published.settled,
      recalledScopes: [...scopes],
    });
    this.#send([message], (router) => routers.has(router));
  }

  #send(messages: Update, wanted: (router: string) => boolean = () => true): void {
    if (messages.length === 0) return;
    for (const [queue, router] of this.#routers) {
      if (!wanted(router) || queue.push(messages)) continue;
      this.#routers.delete(queue);
      queue.fail(
        new HeddleError(
          "exhausted",
          `Ended the watch of router "${router}": ${ROUTER_QUEUE_MAX} publications wait that it does ` +
            "not read. It gets a snapshot when it comes back",
        ),
      );
    }
  }

  /** A snapshot and then deltas, until `signal` aborts or the hub closes. */
  async *watch(router: string, signal: AbortSignal): AsyncGenerator<WatchResponse> {
    const queue = new BoundedQueue<Update>(ROUTER_QUEUE_MAX);
    const published = this.#published;
    const snapshot = this.#snapshot ??= snapshotOf(published);
    // A router that is still being sent a snapshot when a newer one is made goes on with its own.
    const encoded = this.#encoded;
    const onAbort = () => queue.end();
    this.#routers.set(queue, router);
    signal.addEventListener("abort", onAbort);
    try {
      if (signal.aborted) return;
      // First, so that a router knows whom it may serve before it has anything to serve with. What
      // changes meanwhile comes again as a delta.
      for (const part of this.#tenancy.snapshot(() => performance.now())) {
        yield carrying(part, { published, snapshot: true });
      }
      for (const [index, chunk] of snapshot.entries()) {
        yield encoded[index] ??= encodeOnce(chunk);
      }
      for await (const update of queue) yield* update;
    } finally {
      signal.removeEventListener("abort", onAbort);
      this.#routers.delete(queue);
    }
  }

  /** Ends every stream with `error`: control stops. */
  closeAll(error: HeddleError): void {
    for (const queue of this.#routers.keys()) queue.fail(error);
    this.#routers.clear();
  }
}

// What is not of the fleet does not change its revision.
function carrying(
  part: EncodedPart,
  { published, snapshot = false }: {
    readonly published: Published;
    readonly snapshot?: boolean;
  },
): WatchResponse {
  const { settled } = published;
  const revision = encodeRevision(published.revision);
  return withEncoded(create(WatchResponseSchema, { revision, settled, snapshot }), part);
}
