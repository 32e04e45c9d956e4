/** How something of the fleet is at one look, for whoever compares two looks. */
import type { EventItem } from "../console/wire.ts";

export interface Facet {
  readonly kind: EventItem["kind"];
  readonly subject: string;
  /** A transition is a change of this. */
  readonly state: string;
  /** So is one of this, where the state stays the same and means something else. */
  readonly cause?: string;
  /** There only while something is wrong: begun when it comes, over when it goes. */
  readonly passing?: boolean;
  /** What of the subject it is about, where it may have several of the kind. */
  readonly part?: string;
  readonly why: string;
  /** What a person does about it; empty where there is nothing to do. */
  readonly next: string;
  readonly bad: boolean;
}

/** All that was found at one look. */
export interface Look {
  readonly facets: ReadonlyMap<string, Facet>;
  /** Of what nothing can be said at the moment, such as what is being tried again: as it was. */
  readonly unsure: (key: string) => boolean;
}
