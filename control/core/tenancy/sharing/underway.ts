/**
 * What was granted in answers that a router may not have. Until it has said that it does, that credit
 * counts as what it has, not as used: else each answer that is slow, or lost, would cost everybody a
 * part of the limit for a minute.
 */

/** Which of a router's calls this is, and what has become of those before. Ids rise from 1. */
export interface Call {
  readonly id: number;
  /** Calls whose answers had not come when it was made. */
  readonly inFlight: ReadonlySet<number>;
  /** Calls whose answers will never be taken. What they gave back is given back anew. */
  readonly lost: ReadonlySet<number>;
}

/** One answer. */
export interface Answer {
  readonly credit: number;
  readonly share: number;
  /** What the router gave back with the call. */
  readonly returned: number;
  /** The share that it lived by when it called. */
  readonly held: number;
}

export type Underway = ReadonlyMap<number, Answer>;

export interface Sorted {
  /** Answers that may still arrive. */
  readonly underway: Underway;
  /** Answers that never will. */
  readonly lost: readonly Answer[];
}

/** What a call says of the answers before it. One that it does not name has arrived. */
export function sortAnswers(before: Underway, call: Call | undefined): Sorted {
  const underway = new Map<number, Answer>();
  const lost: Answer[] = [];
  if (call === undefined) return { underway, lost };
  for (const [id, answer] of before) {
    if (call.lost.has(id)) lost.push(answer);
    else if (id >= call.id || call.inFlight.has(id)) underway.set(id, answer);
  }
  return { underway, lost };
}

/** Adds the answer to a call, or more of it. */
export function withAnswer(before: Underway, id: number, answer: Answer): Underway {
  const first = before.get(id);
  const sum = first === undefined ? answer : {
    ...answer,
    credit: first.credit + answer.credit,
    returned: first.returned + answer.returned,
  };
  return new Map(before).set(id, sum);
}

export function creditOf(underway: Underway): number {
  let sum = 0;
  for (const { credit } of underway.values()) sum += credit;
  return sum;
}

/** The largest share that a router may come to live by. */
export function shareOf(underway: Underway): number {
  let most = 0;
  for (const { share } of underway.values()) most = Math.max(most, share);
  return most;
}
