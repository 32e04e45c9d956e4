/**
 * What changed its state and what went wrong, remembered for operators who look: a bounded list of
 * transitions, found by comparing what there is with what there was at the last look. Nothing is
 * stored; it begins anew with each time of leading.
 */
import type { World } from "../../core/world.ts";
import type { EventItem } from "../console/wire.ts";
import type { Facet } from "./facet.ts";
import { fleetFacets } from "./fleet_facets.ts";
import { type Beside, troubleFacets } from "./trouble_facets.ts";

export const LOOK_EVERY_MS = 2_000;
/** How soon what a new leader begins with is taken for known. */
export const BEGIN_WITHIN_MS = 100;

/** What a person reads back, and some 100 kB. */
const EVENTS_MAX = 300;

/** Longest text of one event; the page of the thing itself has the rest. */
const TEXT_CHARS_MAX = 400;

export class Happenings {
  #before: ReadonlyMap<string, Facet> | undefined;
  readonly #events = new Map<string, EventItem>();
  readonly #beside: () => Beside;
  #count = 0;
  #term = 0;

  /** `beside` tells what is known beside the world while this control leads. */
  constructor(beside: () => Beside) {
    this.#beside = beside;
  }

  /**
   * Takes what there is for known when this control begins to lead, so that what comes right after is
   * news and does not wait for the next look.
   */
  begin(world: World | undefined, now: number): void {
    if (world !== undefined && world.term !== this.#term) this.look(world, now);
  }

  /** Compares with the last look. `world` is undefined while this control stands by. */
  look(world: World | undefined, now: number): void {
    if (world === undefined || world.term !== this.#term) this.#before = undefined;
    if (world === undefined) return;
    this.#term = world.term;
    const troubles = troubleFacets(world, this.#beside(), now);
    const facets = new Map([...fleetFacets(world, now), ...troubles.facets]);
    // What is wrong from the beginning is news as well; how things are is not.
    const before = this.#before ??
      new Map([...facets].filter(([, { passing }]) => passing !== true));
    for (const [key, facet] of before) {
      if (!facets.has(key) && troubles.unsure(key)) facets.set(key, facet);
    }
    this.#compare(before, facets, now);
    this.#before = facets;
  }

  /** By a number that rises. */
  events(): Map<string, EventItem> {
    return new Map(this.#events);
  }

  #compare(
    before: ReadonlyMap<string, Facet>,
    facets: ReadonlyMap<string, Facet>,
    now: number,
  ): void {
    for (const [key, facet] of facets) {
      const old = before.get(key);
      if (old?.state === facet.state && old.cause === facet.cause) continue;
      const from = old === undefined || old.state === facet.state ? "" : `${old.state} → `;
      const words = [`${from}${facet.state}`, facet.part ?? "", facet.why];
      this.#add(facet, words.filter((each) => each !== "").join(": "), now);
    }
    for (const [key, facet] of before) {
      if (facets.has(key)) continue;
      const part = facet.part === undefined ? "" : `: ${facet.part}`;
      const words = facet.passing === true
        ? `${facet.state} is over${part}`
        : `${facet.state} → gone`;
      this.#add({ ...facet, bad: false, next: "" }, words, now);
    }
  }

  #add({ kind, subject, bad, next }: Facet, text: string, now: number): void {
    const id = String(++this.#count).padStart(9, "0");
    this.#events.set(id, {
      atMs: Math.round(now),
      kind,
      subject,
      text: cut(text),
      bad,
      next: cut(next),
    });
    for (const oldest of this.#events.keys()) {
      if (this.#events.size <= EVENTS_MAX) break;
      this.#events.delete(oldest);
    }
  }
}

function cut(text: string): string {
  return text.length > TEXT_CHARS_MAX ? `${text.slice(0, TEXT_CHARS_MAX)}…` : text;
}
