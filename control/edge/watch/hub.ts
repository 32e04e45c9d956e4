/**
 * Gives every router the newest publication: a snapshot when it comes, deltas from then on. What
 * is sent is encoded once for all. A router that does not keep up loses its stream and comes back
 * for a snapshot: state that is replaced must not pile up.
 */
import { HeddleError } from "@heddle/proto/error";
import type { WatchResponse } from "@heddle/proto/gen/router";
import type { Published } from "../../core/published.ts";
import { BoundedQueue } from "../bounded_queue.ts";
import { deltaOf, snapshotOf } from "./delta.ts";
import { encodeOnce } from "./encoded.ts";

/** Publications that may wait for one router. At most four come in a second. */
export const ROUTER_QUEUE_MAX = 64;

/** One publication: all its messages, or none. */
type Update = readonly WatchResponse[];

export class WatchHub {
  #published: Published;
  /** Of `#published`; made when the first router asks for it, and encoded as it is first sent. */
  #snapshot: Update | undefined;
  #encoded: WatchResponse[] = [];
  readonly #routers = new Map<BoundedQueue<Update>, string>();

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
    for (const [queue, router] of this.#routers) {
      if (messages.length === 0 || queue.push(messages)) continue;
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
    const snapshot = this.#snapshot ??= snapshotOf(this.#published);
    // A router that is still being sent a snapshot when a newer one is made goes on with its own.
    const encoded = this.#encoded;
    const onAbort = () => queue.end();
    this.#routers.set(queue, router);
    signal.addEventListener("abort", onAbort);
    try {
      if (signal.aborted) return;
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
