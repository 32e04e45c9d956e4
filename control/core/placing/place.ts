/**
 * Where a replica goes. The two hard rules hold by construction: a candidate set is always the nodes
 * of one fabric, already filtered to one GPU class, and nothing here can join two such sets.
 */
import { type Candidate, fabricPorts } from "./candidate.ts";
import { firstRejection, type PlaceRequest } from "./fits.ts";
import { type Rejection, short } from "./rejection.ts";
import { compareScores, comparison, meanScores, type Scores, scoreSeat } from "./scores.ts";
import { type Seat, seatOn } from "./seat.ts";

export type Placement = Placed | NoPlace;

export interface Placed {
  readonly kind: "placed";
  /** By rank; each on a node of its own. */
  readonly seats: readonly Seat[];
  readonly scores: Scores;
  /** What an operator should know, e.g. that no NVLink clique was large enough. */
  readonly notes: readonly string[];
  /** Every node that was not used, by name. */
  readonly rejections: readonly Rejection[];
}

export interface NoPlace {
  readonly kind: "none";
  /** Every node, by name. */
  readonly rejections: readonly Rejection[];
}

/** What a rank on each fitting node would score at best, whether it is used or not. */
type Told = Map<string, Scores>;

/** All seats of one possible replica. */
interface Option {
  readonly seats: readonly Seat[];
  readonly scores: Scores;
}

/**
 * Places one replica of one profile, whole or not at all. Pure; the order of `candidates` does not
 * matter, ties break by name. Every node that is not used says why.
 */
export function place(request: PlaceRequest, candidates: Iterable<Candidate>): Placement {
  const rejections = new Map<string, Rejection>();
  const fitting: Candidate[] = [];
  for (const candidate of sortedByName(candidates)) {
    const rejection = firstRejection(request, candidate);
    if (rejection === undefined) fitting.push(candidate);
    else rejections.set(candidate.name, rejection);
  }
  const told: Told = new Map();
  const options = request.profile.nodes === 1
    ? singleNodeOptions(request, fitting, told)
    : fabricOptions(request, fitting, { rejections, told });
  const best = bestOf(options);
  if (best === undefined) return { kind: "none", rejections: sortedByNode(rejections) };
  const used = new Set(best.seats.map((seat) => seat.candidate.name));
  for (const candidate of fitting) {
    if (!used.has(candidate.name) && !rejections.has(candidate.name)) {
      const own = told.get(candidate.name) ?? best.scores;
      rejections.set(candidate.name, outscored(request, candidate, own, best));
    }
  }
  for (const name of used) rejections.delete(name);
  return {
    kind: "placed",
    seats: best.seats,
    scores: best.scores,
    notes: notesOf(request, best.seats),
    rejections: sortedByNode(rejections),
  };
}

function singleNodeOptions(
  request: PlaceRequest,
  fitting: readonly Candidate[],
  told: Told,
): Option[] {
  return fitting.flatMap((candidate) => {
    const seat = seatOn(request, candidate, "");
    if (seat === undefined) return [];
    const only = option(request, [seat], true);
    told.set(candidate.name, only.scores);
    return [only];
  });
}

/** One option per fabric: the best equal nodes of it. Nodes of a fabric that is too small say so. */
function fabricOptions(
  request: PlaceRequest,
  fitting: readonly Candidate[],
  { rejections, told }: { rejections: Map<string, Rejection>; told: Told },
): Option[] {
  const want = request.profile.nodes;
  const options: Option[] = [];
  const seated = new Set<string>();
  for (const [fabric, members] of byFabric(fitting)) {
    const seats = members.flatMap((member) => seatOn(request, member, fabric) ?? []);
    const { equal, hcaCount } = mostEqual(seats, want);
    if (equal.length >= want) {
      options.push(bestSeats(request, equal, told));
      for (const seat of equal) seated.add(seat.candidate.name);
    }
    for (const seat of seats) {
      const name = seat.candidate.name;
      if (equal.length >= want && equal.includes(seat)) continue;
      const rejection = seat.hcas.length === hcaCount
        ? short(name, "fabric_short", { want, have: equal.length }, `nodes fit in ${fabric}`)
        : short(
          name,
          "hca_count",
          { want: hcaCount, have: seat.hcas.length },
          `usable ports in ${fabric}, and every rank gets the same number`,
        );
      if (!rejections.has(name)) rejections.set(name, rejection);
    }
  }
  for (const candidate of fitting) {
    if (seated.has(candidate.name)) rejections.delete(candidate.name);
    else if (!rejections.has(candidate.name)) {
      rejections.set(
        candidate.name,
        short(candidate.name, "fabric_short", { want, have: 1 }, "it is on no usable fabric"),
      );
    }
  }
  return options;
}

/** The largest set of seats with one number of HCAs; of sets that suffice, the one with most HCAs. */
function mostEqual(
  seats: readonly Seat[],
  want: number,
): { readonly equal: readonly Seat[]; readonly hcaCount: number } {
  const sets = new Map<number, Seat[]>();
  for (const seat of seats) {
    sets.set(seat.hcas.length, [...(sets.get(seat.hcas.length) ?? []), seat]);
  }
  const ranked = [...sets].sort(([countA, a], [countB, b]) => {
    const enough = Number(b.length >= want) - Number(a.length >= want);
    if (enough !== 0) return enough;
    return (a.length >= want ? 0 : b.length - a.length) || countB - countA;
  });
  const [hcaCount, equal] = ranked[0] ?? [0, []];
  return { equal, hcaCount };
}

function bestSeats(request: PlaceRequest, equal: readonly Seat[], told: Told): Option {
  const ranked = equal
    .map((seat) => ({ seat, scores: scoreSeat(request, seat, false) }))
    .sort((a, b) =>
      compareScores(a.scores, b.scores) || compare(a.seat.candidate.name, b.seat.candidate.name)
    );
  for (const { seat: { candidate }, scores } of ranked) {
    const sofar = told.get(candidate.name);
    if (sofar === undefined || compareScores(scores, sofar) < 0) told.set(candidate.name, scores);
  }
  // Ranks are numbered by name, so that the same nodes always make the same replica.
  const seats = ranked.slice(0, request.profile.nodes).map(({ seat }) => seat)
    .sort((a, b) => compare(a.candidate.name, b.candidate.name));
  return option(request, seats, false);
}

function option(request: PlaceRequest, seats: readonly Seat[], alone: boolean): Option {
  const scores = meanScores(seats.map((seat) => scoreSeat(request, seat, alone)));
  return { seats, scores };
}

function bestOf(options: readonly Option[]): Option | undefined {
  let best: Option | undefined;
  for (const each of options) {
    if (best === undefined || compareScores(each.scores, best.scores) < 0) best = each;
  }
  return best;
}

/** Fabrics that at least one port can carry traffic on, by name. */
function byFabric(fitting: readonly Candidate[]): readonly [string, readonly Candidate[]][] {
  const members = new Map<string, Candidate[]>();
  for (const candidate of fitting) {
    for (const fabric of candidate.inventory.fabrics) {
      if (fabric.name === "" || fabricPorts(candidate.inventory, fabric.name).length === 0) {
        continue;
      }
      const sofar = members.get(fabric.name) ?? [];
      if (!sofar.includes(candidate)) members.set(fabric.name, [...sofar, candidate]);
    }
  }
  return [...members].sort(([a], [b]) => compare(a, b));
}

/** Of a node where the model serves already it says that, and not a score. */
function outscored(
  { model }: PlaceRequest,
  { name: node, models }: Candidate,
  own: Scores,
  chosen: Option,
): Rejection {
  const { by, ...numbers } = comparison(own, chosen.scores);
  const [have = 0, want = 0] = [numbers.have, numbers.want].map((score) =>
    Math.round(score * 1_000) / 1_000
  );
  const detail = by === "spread"
    ? `it fits, and has ${models.get(model.name) ?? 0} of this model's shards already; ` +
      `what was chosen has ${chosenShards(model.name, chosen)}`
    : `it fits with ${by} ${have}; what was chosen has ${want}`;
  return { node, reason: "outscored", want, have, detail };
}

/** How many shards of the model are on the chosen nodes: "none", "1", or "1 and 2". */
function chosenShards(model: string, { seats }: Option): string {
  const counts = seats.map(({ candidate }) => candidate.models.get(model) ?? 0);
  const [least, most] = [Math.min(...counts), Math.max(...counts)];
  if (most === 0) return "none";
  return least === most ? `${most}` : `${least} to ${most}`;
}

function notesOf({ profile }: PlaceRequest, seats: readonly Seat[]): readonly string[] {
  const size = Math.min(profile.tp, profile.gpus_per_node);
  if (size < 2) return [];
  const unlinked = seats.filter((seat) => seat.choice.linkedShare < 1);
  return unlinked.map((seat) =>
    `no NVLink clique of ${size} GPUs is free on ${seat.candidate.name}; ` +
    "tensor parallelism goes over PCIe there"
  );
}

function sortedByName(candidates: Iterable<Candidate>): Candidate[] {
  return [...candidates].sort((a, b) => compare(a.name, b.name));
}

function sortedByNode(rejections: ReadonlyMap<string, Rejection>): Rejection[] {
  return [...rejections.values()].sort((a, b) => compare(a.node, b.node));
}

function compare(a: string, b: string): number {
  return a < b ? -1 : a > b ? 1 : 0;
}
