/**
 * The requests of one model between their arrival and their end. Strict order between bands, fair
 * shares between tenants inside one, and nothing waits while there is room for it.
 *
 * Two exceptions keep that order bearable. A band leaves free what the better bands had in flight
 * lately, up to half of the capacity: see `headroom.ts`. And a band of which nothing was let in for
 * as long as its setting allows has its first request promoted: it goes before everyone else, once.
 */
import { type Band, BANDS, rankOf } from "./band.ts";
import { FairQueue, type Queued } from "./fair_queue.ts";
import { type Flow, flowed, noFlow, perSecond } from "./flow.ts";
import { RecentPeak } from "./headroom.ts";
import type { Fullness } from "../load/saturation.ts";

/** A request that waits or is in flight. Owned by its `ModelQueue` until it ends. */
export interface Ticket extends Queued {
  readonly band: Band;
  readonly enteredAt: number;
}

export interface BandBounds {
  /** Requests that may wait. */
  readonly requestsMax: number;
  /** Bytes of bodies that may wait. */
  readonly bytesMax: number;
  readonly waitMsMax: number;
  /** After so long without any of the band let in, its first request is promoted. */
  readonly promoteAfterMs: number;
}

export type Bounds = Readonly<Record<Band, BandBounds>>;

/** Why a request waited; `none` when it did not. */
export type WaitReason = "none" | "saturated" | "headroom" | "behind";

/** Most of the capacity that is left free for better bands. */
const HEADROOM_SHARE_MAX = 0.5;
/** Below this rate an estimate would be hours, and wrong: nothing says that it never ends. */
const SHARE_LEFT_MIN = 0.05;

interface Line {
  readonly queue: FairQueue<Ticket>;
  readonly peak: RecentPeak;
  inFlight: number;
  arrivals: Flow;
  /** When one was let in last, or the line began to wait. */
  servedAt: number;
}

export class ModelQueue {
  readonly #bounds: Bounds;
  readonly #lines: Readonly<Record<Band, Line>>;
  #ended: Flow;
  #inFlight = 0;

  constructor(bounds: Bounds, now: number) {
    this.#bounds = bounds;
    const line = (): Line => ({
      queue: new FairQueue(),
      peak: new RecentPeak(),
      inFlight: 0,
      arrivals: noFlow(now),
      servedAt: now,
    });
    this.#lines = { platinum: line(), gold: line(), silver: line(), bronze: line() };
    this.#ended = noFlow(now);
  }

  /** Requests that were let in and have not ended. */
  get inFlight(): number {
    return this.#inFlight;
  }

  get size(): number {
    return BANDS.reduce((sum, band) => sum + this.#lines[band].queue.size, 0);
  }

  /** Nothing waits and nothing is in flight. */
  get idle(): boolean {
    return this.#inFlight === 0 && this.size === 0;
  }

  /** What waits in each band in which something does. */
  counts(): readonly { readonly band: Band; readonly requests: number; readonly bytes: number }[] {
    return BANDS.map((band) => ({ band, ...this.waiting(band) }))
      .filter(({ requests }) => requests > 0);
  }

  waiting(band: Band): { readonly requests: number; readonly bytes: number } {
    const { queue } = this.#lines[band];
    return { requests: queue.size, bytes: queue.bytes };
  }

  /** Lets a request in, or makes it wait; `full`, and nothing changes, when its band is full. */
  enter(ticket: Ticket, fullness: Fullness, now: number): "let_in" | "waits" | "full" {
    const line = this.#lines[ticket.band];
    const bounds = this.#bounds[ticket.band];
    line.arrivals = flowed(line.arrivals, now);
    if (this.blocked(ticket.band, fullness, now) === "none") {
      this.#letIn(ticket, now);
      return "let_in";
    }
    const { queue } = line;
    if (queue.size >= bounds.requestsMax || queue.bytes + ticket.bytes > bounds.bytesMax) {
      return "full";
    }
    if (queue.size === 0) line.servedAt = now;
    queue.push(ticket);
    return "waits";
  }

  /** Lets in the next one of those that wait, if there is room for it. */
  next(fullness: Fullness, now: number): Ticket | undefined {
    const starved = this.#starved(now);
    if (starved !== undefined) {
      return this.#room(fullness, 0) ? this.#letIn(starved, now) : undefined;
    }
    for (const band of BANDS) {
      const head = this.#lines[band].queue.peek();
      if (head === undefined) continue;
      return this.#room(fullness, this.#leftFree(band, fullness, now))
        ? this.#letIn(head, now)
        : undefined;
    }
    return undefined;
  }

  /** What keeps a request of `band` from being let in at once. */
  blocked(band: Band, fullness: Fullness, now: number): WaitReason {
    if (!this.#room(fullness, 0)) return "saturated";
    if (!this.#room(fullness, this.#leftFree(band, fullness, now))) return "headroom";
    const behind = BANDS.some((each) =>
      rankOf(each) <= rankOf(band) && this.#lines[each].queue.size > 0
    );
    return behind ? "behind" : "none";
  }

  /** One that waited does not want to any more. False when it does not wait here. */
  leave(ticket: Ticket): boolean {
    return this.#lines[ticket.band].queue.remove(ticket);
  }

  /** One that was let in has ended, and cost so much; undefined when nobody knows. */
  end(ticket: Ticket, tokens: number | undefined, now: number): void {
    const line = this.#lines[ticket.band];
    line.inFlight--;
    this.#inFlight--;
    this.#ended = flowed(this.#ended, now);
    if (tokens !== undefined) line.queue.settle(ticket.tenant, tokens - ticket.tokens);
  }

  /**
   * How long a request of `band` that came now would wait, in ms; undefined while nothing has
   * ended yet. What better bands send meanwhile goes before it.
   */
  estimateMs(band: Band, now: number): number | undefined {
    const rate = perSecond(this.#ended, now);
    if (rate <= 0) return undefined;
    let ahead = 1;
    let better = 0;
    for (const each of BANDS) {
      if (rankOf(each) > rankOf(band)) break;
      ahead += this.#lines[each].queue.size;
      if (each !== band) better += perSecond(this.#lines[each].arrivals, now);
    }
    return ahead / Math.max(rate - better, rate * SHARE_LEFT_MIN) * 1_000;
  }

  #starved(now: number): Ticket | undefined {
    for (const band of BANDS) {
      const { queue, servedAt } = this.#lines[band];
      if (queue.size > 0 && now - servedAt >= this.#bounds[band].promoteAfterMs) {
        return queue.peek();
      }
    }
    return undefined;
  }

  #letIn(ticket: Ticket, now: number): Ticket {
    const line = this.#lines[ticket.band];
    line.queue.start(ticket);
    line.servedAt = now;
    line.inFlight++;
    this.#inFlight++;
    line.peak.saw(line.inFlight, now);
    return ticket;
  }

  /**
   * An idle model always has room: otherwise a replica that takes one request would serve nobody.
   * One without any replica that works has too: there is nothing to wait for, and who is let in
   * learns at once what is wrong.
   */
  #room({ saturation, capacity }: Fullness, leftFree: number): boolean {
    if (this.#inFlight === 0 || capacity <= 0) return true;
    return saturation + leftFree / capacity < 1;
  }

  #leftFree(band: Band, { capacity }: Fullness, now: number): number {
    let free = 0;
    for (const each of BANDS) {
      if (each === band) break;
      const { peak, inFlight } = this.#lines[each];
      // What is in flight now counts as seen: a long answer is as much of a peak as many short ones.
      peak.saw(inFlight, now);
      const most = peak.at(now);
      // The next peak is as likely to be a little higher as lower.
      free += Math.max(0, most + Math.sqrt(most) - inFlight);
    }
    return Math.min(free, capacity * HEADROOM_SHARE_MAX);
  }
}
