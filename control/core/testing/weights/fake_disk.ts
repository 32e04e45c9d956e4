/**
 * A node's disk of weights for simulations: what its agent fetched there, what people put beside it,
 * and something else that takes room. Written from the promises of docs/weights.md.
 */
import type { Plain } from "@heddle/proto/plain";
import type { Weights, WeightsList, WeightsWant } from "@heddle/proto/gen/weights";
import { encodeWeightsState } from "@heddle/proto/weights_state";
import type { EpochMs } from "../../ids.ts";

export const GIB = 2 ** 30;

/** What was fetched, or is being. */
interface Folder {
  readonly want: Plain<WeightsWant>;
  readonly name: string;
  /** Whole from then on; Infinity: there was no room. */
  readonly readyAt: EpochMs;
}

/** Bytes of a source, the same wherever one looks: 5 to 29 GiB. */
export function sizeOf(source: string): number {
  const sum = [...source].reduce((so, letter) => (so * 31 + letter.charCodeAt(0)) % 1_009, 7);
  return (5 + sum % 25) * GIB;
}

export class FakeDisk {
  /** Folders of people, some of them called as Heddle calls its own. */
  readonly foreign: ReadonlySet<string>;
  /** What takes room and is neither Heddle's nor weights. */
  fillerBytes = 0;
  readonly #totalBytes: number;
  readonly #fetchMs: number;
  #folders: readonly Folder[] = [];
  /** Sources of all that was ever fetched, by folder. */
  readonly #sources = new Map<string, string>();

  constructor({ totalBytes, fetchMs, foreign }: FakeDiskOptions) {
    this.#totalBytes = totalBytes;
    this.#fetchMs = fetchMs;
    this.foreign = new Set(foreign);
  }

  freeBytes(): number {
    const taken = this.#folders.filter(({ readyAt }) => readyAt !== Infinity)
      .reduce((sum, { want }) => sum + sizeOf(want.source), 0);
    return Math.max(0, this.#totalBytes - this.fillerBytes - taken);
  }

  /** When the weights are there; Infinity: they do not fit. One fetch at a time for each source. */
  fetch(want: Plain<WeightsWant>, now: EpochMs): EpochMs {
    const there = this.#folders.find((each) => each.want.source === want.source);
    if (there !== undefined && there.readyAt !== Infinity) return Math.max(now, there.readyAt);
    const fits = sizeOf(want.source) <= this.freeBytes();
    const readyAt = fits ? now + this.#fetchMs : Infinity;
    const version = want.version || "v1";
    const name = `${want.source.replaceAll(/\W+/g, "-")}-0123456789abcd@${version}`;
    this.#sources.set(name, want.source);
    this.#folders = [
      ...this.#folders.filter((each) => each !== there),
      { want: { ...want, version }, name, readyAt },
    ];
    return readyAt;
  }

  /** The source of a folder that Heddle fetched once, whether it is still there or not. */
  sourceOf(folder: string): string | undefined {
    return this.#sources.get(folder);
  }

  /** Names of what is whole. */
  whole(now: EpochMs): readonly string[] {
    return this.#folders.filter(({ readyAt }) => readyAt <= now).map(({ name }) => name);
  }

  /** As the agent judges it: only what Heddle fetched, whole, and not in use. */
  remove(folder: string, used: ReadonlySet<string>, now: EpochMs): boolean {
    const there = this.#folders.find(({ name }) => name === folder);
    if (there === undefined || there.readyAt > now || used.has(there.want.source)) return false;
    this.#folders = this.#folders.filter((each) => each !== there);
    return true;
  }

  /** What was on its way is not continued. */
  restart(now: EpochMs): void {
    this.#folders = this.#folders.filter(({ readyAt }) => readyAt <= now);
  }

  /** What the agent says of it; `users` are ids of shards by source. */
  list(users: ReadonlyMap<string, readonly string[]>, now: EpochMs): Plain<WeightsList> {
    const weights = this.#folders.map((each): Plain<Weights> => {
      const { want, name, readyAt } = each;
      const state = readyAt === Infinity ? "failed" : readyAt <= now ? "ready" : "fetching";
      return {
        want,
        state: encodeWeightsState(state),
        folder: state === "ready" ? name : "",
        path: state === "ready" ? `/var/lib/heddle/models/heddle/${name}` : "",
        sizeBytes: BigInt(sizeOf(want.source)),
        doneBytes: 0n,
        reason: state === "failed" ? "disk_full" : "",
        message: "",
        shardIds: users.get(want.source) ?? [],
      };
    });
    return { weights: weights.toSorted((a, b) => a.state === b.state ? 0 : rank(a) - rank(b)) };
  }
}

export interface FakeDiskOptions {
  readonly totalBytes: number;
  /** How long a fetch takes. */
  readonly fetchMs: number;
  readonly foreign: readonly string[];
}

/** What is whole comes first. */
function rank({ folder }: Plain<Weights>): number {
  return folder === "" ? 1 : 0;
}
