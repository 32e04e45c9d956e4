/** Has nodes remove weights that nobody asks for when they lack the room. */
import { logger } from "@heddle/common/log";
import { delay } from "@heddle/common/task";
import { errorText } from "@heddle/proto/error";
import type { Audit } from "../../core/store_record.ts";
import { type Removal, weightsToRemove } from "../../core/weights/make_room.ts";
import { type UnusedByFolder, unusedNow } from "../../core/weights/unused.ts";
import type { World } from "../../core/world.ts";
import type { ControlMetrics } from "../control_metrics.ts";
import type { NodeRequests } from "../node_requests.ts";
import { removeOn } from "./remove_on.ts";

const log = logger("control", "weights");

const LOOK_MS = 2_000;
/** Three heartbeats: by then the node has said how much room it has now. */
const HEARD_AGAIN_MS = 15_000;
/** A node that refuses knows something that control does not. */
const REFUSED_MS = 600_000;

export interface RoomKeeperOptions {
  readonly loop: { world(): World; now(): number };
  readonly requests: Pick<NodeRequests, "ask">;
  readonly persist: (records: readonly Audit[]) => Promise<void>;
  readonly metrics: Pick<ControlMetrics, "weightsRemoved">;
  /** Free bytes of a disk below which unused weights go; undefined: none ever do. */
  readonly freeBelowBytes: number | undefined;
  /** False while another control may lead. */
  readonly sure: () => boolean;
}

/** Runs until `signal` aborts. Never rejects. */
export async function keepRoom(options: RoomKeeperOptions, signal: AbortSignal): Promise<void> {
  if (options.freeBelowBytes === undefined) return;
  const keeper = new RoomKeeper({ ...options, freeBelowBytes: options.freeBelowBytes });
  while (!signal.aborted) {
    await delay(LOOK_MS, signal);
    if (!signal.aborted && options.sure()) keeper.look();
  }
  await keeper.idle();
}

export class RoomKeeper {
  readonly #options: RoomKeeperOptions & { readonly freeBelowBytes: number };
  /** Removals under way, by node. */
  readonly #running = new Map<string, Promise<void>>();
  /** Nodes, and folders of nodes, that are left alone until then. */
  readonly #until = new Map<string, number>();
  #unused: UnusedByFolder = new Map();

  constructor(options: RoomKeeperOptions & { readonly freeBelowBytes: number }) {
    this.#options = options;
  }

  /** Looks once, and begins what has to be removed. */
  look(): void {
    const { loop, freeBelowBytes } = this.#options;
    const [world, now] = [loop.world(), loop.now()];
    for (const [key, until] of this.#until) if (until <= now) this.#until.delete(key);
    this.#unused = unusedNow(world, this.#unused, now);
    const open = new Map(
      [...this.#unused].filter(([key, { node }]) =>
        !this.#until.has(key) && !this.#until.has(node) && !this.#running.has(node)
      ),
    );
    for (const removal of weightsToRemove(world, open, { freeBelowBytes, now })) {
      const { node } = removal;
      const removing = this.#remove(removal).finally(() => this.#running.delete(node));
      this.#running.set(node, removing);
    }
  }

  /** Resolves when nothing is being removed. */
  async idle(): Promise<void> {
    await Promise.all(this.#running.values());
  }

  async #remove(removal: Removal): Promise<void> {
    const { loop, requests, persist, metrics } = this.#options;
    const { node, folder, source, reason, detail } = removal;
    log.info("Removing weights that nobody asks for", { node, folder, source, reason, detail });
    try {
      const freed = await removeOn(requests, node, folder);
      this.#until.set(node, loop.now() + HEARD_AGAIN_MS);
      metrics.weightsRemoved(reason, Number(freed));
      log.info("Removed weights", { node, folder, freedBytes: Number(freed) });
      await persist([{
        kind: "audit",
        at: loop.now(),
        by: "control",
        action: "remove_weights",
        subject: `${node}/${folder}`,
        reason: `${reason}: ${detail}`,
      }]);
    } catch (error) {
      this.#until.set(`${node}/${folder}`, loop.now() + REFUSED_MS);
      log.warning("Cannot remove weights", { node, folder, why: errorText(error) });
    }
  }
}
