/** The streams between simulated nodes and control, and everything that is on its way. */
import type { EpochMs, NodeId } from "../ids.ts";
import type { Random } from "./random.ts";

/** Longest time that a message takes, in ms. */
const TRANSIT_MS_MAX = 400;
const HEARTBEAT_MS = 5_000;

/** One link between control and a node. */
interface Link {
  /** Number of its newest stream; 0 while none is open. */
  readonly stream: number;
  /** Nothing passes until then, and nobody notices. */
  silentUntil: EpochMs;
  /** When the agent dials again. */
  readonly dialAt: EpochMs | undefined;
  nextBeatAt: EpochMs;
  /** Order within a stream is kept. */
  upAt: EpochMs;
  downAt: EpochMs;
}

/** Something on its way, in the order of `at`. */
interface Parcel {
  readonly at: EpochMs;
  readonly deliver: (now: EpochMs) => void;
}

export class Wires {
  /** Share of commands that are lost on the way; half as many arrive twice. */
  loss = 0;
  /** Share of commands that take longer than control waits for an answer. */
  late = 0;
  readonly #random: Random;
  readonly #links = new Map<NodeId, Link>();
  #parcels: Parcel[] = [];
  #streams = 0;

  constructor(random: Random) {
    this.#random = random;
  }

  /** A stream is open. */
  open(name: NodeId): boolean {
    return this.#links.get(name)?.stream !== 0;
  }

  /** What is open ends; the agent dials at `dialAt`. */
  cut(name: NodeId, dialAt: EpochMs): void {
    const silentUntil = this.#links.get(name)?.silentUntil ?? 0;
    this.#links.set(name, { stream: 0, silentUntil, dialAt, nextBeatAt: 0, upAt: 0, downAt: 0 });
  }

  silence(name: NodeId, until: EpochMs): void {
    this.#linkOf(name).silentUntil = until;
  }

  silent(name: NodeId, now: EpochMs): boolean {
    return now < this.#linkOf(name).silentUntil;
  }

  /** Opens a stream where none is and the agent is due to dial. */
  dialled(name: NodeId, now: EpochMs): boolean {
    const { stream, dialAt, silentUntil } = this.#linkOf(name);
    if (stream !== 0 || dialAt === undefined || dialAt > now) return false;
    this.#links.set(name, {
      stream: ++this.#streams,
      silentUntil,
      dialAt: undefined,
      nextBeatAt: now + HEARTBEAT_MS,
      upAt: now,
      downAt: now,
    });
    return true;
  }

  /** True once for each heartbeat that is due. */
  beats(name: NodeId, now: EpochMs): boolean {
    const link = this.#linkOf(name);
    if (now < link.nextBeatAt) return false;
    link.nextBeatAt = now + HEARTBEAT_MS;
    return true;
  }

  /** From a node to control. What an older stream still carries is dropped at the door. */
  up(name: NodeId, now: EpochMs, deliver: () => void): void {
    const link = this.#linkOf(name);
    const { stream } = link;
    link.upAt = Math.max(link.upAt, now + this.#random.int(0, TRANSIT_MS_MAX));
    this.post(link.upAt, () => {
      if (this.#linkOf(name).stream === stream) deliver();
    });
  }

  /** From control to a node: once, twice, late, or never. `deliver` is told when. */
  down(name: NodeId, now: EpochMs, deliver: (at: EpochMs) => void): void {
    const link = this.#linkOf(name);
    if (link.stream === 0 || this.#random.chance(this.loss)) return;
    const { stream } = link;
    const delay = this.#random.chance(this.late)
      ? this.#random.int(10_000, 15_000)
      : this.#random.int(0, TRANSIT_MS_MAX);
    link.downAt = Math.max(link.downAt, now + delay);
    const twice = this.#random.chance(this.loss / 2);
    this.post(link.downAt, (arrived) => {
      const same = this.#linkOf(name).stream === stream;
      if (!same || this.silent(name, arrived)) return;
      deliver(arrived);
      if (twice) deliver(arrived);
    });
  }

  post(at: EpochMs, deliver: (now: EpochMs) => void): void {
    this.#parcels.push({ at, deliver });
  }

  /** Control died: what was on its way is lost. */
  dropAll(): void {
    this.#parcels = [];
  }

  deliver(now: EpochMs): void {
    const due = this.#parcels.filter((parcel) => parcel.at <= now).sort((a, b) => a.at - b.at);
    this.#parcels = this.#parcels.filter((parcel) => parcel.at > now);
    for (const parcel of due) parcel.deliver(now);
  }

  #linkOf(name: NodeId): Link {
    const link = this.#links.get(name);
    if (link === undefined) throw new Error(`there is no node ${name}`);
    return link;
  }
}
