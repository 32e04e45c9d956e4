/** Keeps the faults of GPUs that the kernel logged since the boot. */

import { parseXid, type XidEvent } from "../core/health/xid.ts";
import { KernelLog } from "../edge/hardware/kernel_log.ts";

/** Kept of one GPU: a GPU in trouble logs thousands, and the first ones tell. */
const EVENT_COUNT_MAX = 32;

/** Kept of all: more addresses than a machine has GPUs are not GPUs. */
const ADDRESS_COUNT_MAX = 256;

export class FaultWatch {
  readonly #log: KernelLog | undefined;
  readonly #events = new Map<string, XidEvent[]>();

  /** `path` is where the kernel's log is readable; undefined: nowhere. */
  constructor(path: string | undefined) {
    this.#log = path === undefined ? undefined : new KernelLog(path, (line) => this.#see(line));
  }

  /** Begins to follow the log; resolves when what was logged so far has been read. Never rejects. */
  async start(): Promise<void> {
    await this.#log?.start();
  }

  /** Faults by PCI address, oldest first; those that are no fault of the GPU's are not kept. */
  events(): ReadonlyMap<string, readonly XidEvent[]> {
    return this.#events;
  }

  #see(line: string): void {
    const event = parseXid(line);
    if (event === undefined || event.verdict === "ignore") return;
    const events = this.#events.get(event.pciAddress);
    if (events === undefined) {
      if (this.#events.size < ADDRESS_COUNT_MAX) this.#events.set(event.pciAddress, [event]);
    } else if (events.length < EVENT_COUNT_MAX || event.verdict === "out") {
      // A grave fault is never crowded out by light ones.
      events.splice(Math.min(events.length, EVENT_COUNT_MAX - 1), 1, event);
    }
  }
}
