/** Keeps the faults of GPUs that the kernel logged since the boot. */

import { parseXid, type XidEvent } from "../core/health/xid.ts";
import { BootMemory } from "../edge/boot_memory.ts";
import { KernelLog } from "../edge/hardware/kernel_log.ts";

/** Kept of one GPU: a GPU in trouble logs thousands, and the first ones tell. */
const EVENT_COUNT_MAX = 32;

/** Kept of all: more addresses than a machine has GPUs are not GPUs. */
const ADDRESS_COUNT_MAX = 256;

/** Of the latest, whatever they say of the GPU, for the diagnosis of an engine. */
const RECENT_COUNT_MAX = 64;

export interface FaultWatchOptions {
  /** Milliseconds; what is logged while the watch follows bears this time. */
  readonly now?: () => number;
  /** What an earlier agent saw, and where to note more. */
  readonly memory?: BootMemory;
}

export class FaultWatch {
  readonly #log: KernelLog | undefined;
  readonly #now: () => number;
  readonly #memory: BootMemory;
  readonly #events = new Map<string, XidEvent[]>();
  readonly #recent: { readonly event: XidEvent; readonly at: number }[] = [];
  #caughtUp = false;

  /** `path` is where the kernel's log is readable; undefined: nowhere. */
  constructor(path: string | undefined, options: FaultWatchOptions = {}) {
    this.#now = options.now ?? Date.now;
    this.#memory = options.memory ?? new BootMemory();
    for (const event of this.#memory.faults) this.#keep(event);
    this.#log = path === undefined ? undefined : new KernelLog(path, (line) => this.#see(line));
  }

  /** Begins to follow the log; resolves when what was logged so far has been read. Never rejects. */
  async start(): Promise<void> {
    await this.#log?.start();
    this.#caughtUp = true;
  }

  /** Resolves when the log has ended; the kernel's own never does. */
  async ended(): Promise<void> {
    await this.#log?.ended();
  }

  /** Faults by PCI address, oldest first; those that are no fault of the GPU's are not kept. */
  events(): ReadonlyMap<string, readonly XidEvent[]> {
    return this.#events;
  }

  /** What the kernel has logged of GPUs since then, whoever's fault it was, oldest first. */
  since(at: number): readonly XidEvent[] {
    return this.#recent.filter((each) => each.at >= at).map(({ event }) => event);
  }

  #see(line: string): void {
    const event = parseXid(line);
    if (event === undefined) return;
    if (this.#caughtUp) {
      this.#recent.push({ event, at: this.#now() });
      if (this.#recent.length > RECENT_COUNT_MAX) this.#recent.shift();
    }
    if (event.verdict === "ignore" || !this.#keep(event)) return;
    this.#memory.noteFaults([...this.#events.values()].flat());
  }

  /** False: it was known. An agent that was restarted reads the log again from its beginning. */
  #keep(event: XidEvent): boolean {
    const events = this.#events.get(event.pciAddress);
    if (events === undefined) {
      if (this.#events.size >= ADDRESS_COUNT_MAX) return false;
      this.#events.set(event.pciAddress, [event]);
      return true;
    }
    if (events.some(({ xid, text }) => xid === event.xid && text === event.text)) return false;
    if (events.length >= EVENT_COUNT_MAX && event.verdict !== "out") return false;
    // A grave fault is never crowded out by light ones.
    events.splice(Math.min(events.length, EVENT_COUNT_MAX - 1), 1, event);
    return true;
  }
}
