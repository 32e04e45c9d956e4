/**
 * What has been seen since the machine was started and must not be forgotten with the agent: faults
 * that the kernel's log tells of only until it has wrapped, and how many NVLinks each GPU has had. A
 * restart of the machine is what clears it: a boot id that differs makes all of it void.
 */
import { z } from "zod";
import { readTextIfExists, writeFileAtomic } from "@heddle/common/atomic_file";
import { logger } from "@heddle/common/log";
import { errorText } from "@heddle/proto/error";
import type { XidEvent } from "../core/health/xid.ts";

const log = logger("agent", "boot");

/** Of all GPUs: what is kept of one is bounded by whoever notes it. */
const FAULTS_MAX = 512;

const documentSchema = z.object({
  version: z.literal(1),
  boot_id: z.string(),
  faults: z.array(z.object({
    pci_address: z.string(),
    /** Null: the GPU fell off the bus without an Xid. */
    xid: z.number().nullable(),
    verdict: z.enum(["out", "nvlink", "warn"]),
    text: z.string(),
  })),
  nvlinks: z.record(z.string(), z.number()),
});
type Document = z.infer<typeof documentSchema>;

export class BootMemory {
  readonly #path: string | undefined;
  readonly #bootId: string;
  #faults: readonly XidEvent[] = [];
  readonly #nvlinks = new Map<string, number>();
  #writing: Promise<void> = Promise.resolve();
  #due = false;
  #complained = false;

  /** Remembers for as long as it lives itself. `openBootMemory` gives one that is written down. */
  constructor(file?: { readonly path: string; readonly bootId: string }) {
    this.#path = file?.path;
    this.#bootId = file?.bootId ?? "";
  }

  /** In the order in which they were noted. */
  get faults(): readonly XidEvent[] {
    return this.#faults;
  }

  /** The most NVLinks that were up at once, by UUID of their GPU. */
  get nvlinks(): ReadonlyMap<string, number> {
    return this.#nvlinks;
  }

  /** Replaces the faults. */
  noteFaults(faults: readonly XidEvent[]): void {
    this.#faults = faults.slice(0, FAULTS_MAX);
    this.#save();
  }

  /** Takes note of how many links are up, where that is more than ever. */
  noteNvlinks(active: ReadonlyMap<string, number>): void {
    let more = false;
    for (const [uuid, count] of active) {
      if (count <= (this.#nvlinks.get(uuid) ?? 0)) continue;
      this.#nvlinks.set(uuid, count);
      more = true;
    }
    if (more) this.#save();
  }

  /** Reads what an earlier agent wrote since this boot. Never rejects. */
  async load(): Promise<void> {
    if (this.#path === undefined) return;
    try {
      const text = await readTextIfExists(this.#path);
      if (text === undefined) return;
      const { boot_id, faults, nvlinks } = documentSchema.parse(JSON.parse(text));
      if (boot_id !== this.#bootId) return;
      this.#faults = faults.map(({ pci_address, xid, verdict, text }) => ({
        pciAddress: pci_address,
        xid: xid ?? undefined,
        verdict,
        text,
      }));
      for (const [uuid, count] of Object.entries(nvlinks)) this.#nvlinks.set(uuid, count);
    } catch (error) {
      // Of a newer agent, or damaged: what the kernel's log still holds is seen again.
      log.warning("Cannot read what was noted since this boot", {
        path: this.#path,
        why: errorText(error),
      });
    }
  }

  /** Resolves when all that was noted so far has been written. */
  async written(): Promise<void> {
    await this.#writing;
  }

  // One write at a time; what changes meanwhile is in the next one.
  #save(): void {
    const path = this.#path;
    if (path === undefined || this.#bootId === "" || this.#due) return;
    this.#due = true;
    this.#writing = this.#writing.then(async () => {
      this.#due = false;
      try {
        await writeFileAtomic(path, `${JSON.stringify(this.#document())}\n`);
      } catch (error) {
        if (!this.#complained) {
          log.warning(
            "Cannot note what was seen since this boot: it is forgotten with this agent",
            {
              path,
              why: errorText(error),
            },
          );
        }
        this.#complained = true;
      }
    });
  }

  #document(): Document {
    return {
      version: 1,
      boot_id: this.#bootId,
      faults: this.#faults.flatMap(({ pciAddress, xid, verdict, text }) =>
        verdict === "ignore" ? [] : [{ pci_address: pciAddress, xid: xid ?? null, verdict, text }]
      ),
      nvlinks: Object.fromEntries(this.#nvlinks),
    };
  }
}

/** The memory in `path`, of the boot with that id; empty: no boot is known, and nothing is kept. */
export async function openBootMemory(path: string, bootId: string): Promise<BootMemory> {
  const memory = new BootMemory({ path, bootId });
  await memory.load();
  return memory;
}
