/**
 * Groups of GPUs that are all linked to each other. Growing a group from one GPU's neighbours is
 * wrong where links are not transitive (DGX-1 V100: GPU0–GPU4 and GPU4–GPU5 are linked, GPU0–GPU5
 * are not), and two GPUs without a link between them must not share a tensor-parallel group. So the
 * groups are cliques; a GPU is in one, the largest that is left when its turn comes.
 */

export interface Edge {
  readonly a: number;
  readonly b: number;
}

/** Steps of search per clique. Boxes with 16 GPUs need under 2,000; past it the best so far counts. */
const STEP_COUNT_MAX = 20_000;

/**
 * Parts the vertices that have an edge into disjoint cliques of two or more, largest first; among
 * equals the one with the lowest numbers. A vertex may be left in none.
 */
export function disjointCliques(edges: readonly Edge[]): readonly (readonly number[])[] {
  const neighbours = new Map<number, Set<number>>();
  const link = (from: number, to: number): void => {
    const set = neighbours.get(from) ?? new Set();
    set.add(to);
    neighbours.set(from, set);
  };
  for (const { a, b } of edges) {
    if (a === b) continue;
    link(a, b);
    link(b, a);
  }
  const left = new Set([...neighbours.keys()].sort((a, b) => a - b));
  const cliques: (readonly number[])[] = [];
  for (;;) {
    const clique = largestClique([...left], neighbours);
    if (clique.length < 2) return cliques;
    cliques.push(clique);
    for (const vertex of clique) left.delete(vertex);
  }
}

/** The largest clique among `vertices` (ascending); of equals the first in order. */
function largestClique(
  vertices: readonly number[],
  neighbours: ReadonlyMap<number, ReadonlySet<number>>,
): readonly number[] {
  let best: readonly number[] = [];
  let steps = 0;
  const extend = (clique: readonly number[], candidates: readonly number[]): void => {
    if (clique.length > best.length) best = clique;
    for (const [at, vertex] of candidates.entries()) {
      if (clique.length + candidates.length - at <= best.length) return; // cannot grow past best
      steps += 1;
      if (steps > STEP_COUNT_MAX) return;
      const linked = neighbours.get(vertex);
      const further = candidates.slice(at + 1).filter((each) => linked?.has(each) === true);
      extend([...clique, vertex], further);
    }
  };
  extend([], vertices);
  return best;
}
