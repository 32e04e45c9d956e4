import { equal, ok } from "node:assert/strict";
import fc from "fast-check";
import { disjointCliques } from "./cliques.ts";

const edges = fc.array(
  fc.record({ a: fc.nat(15), b: fc.nat(15) }),
  { maxLength: 120 },
);

Deno.test("disjointCliques() puts no two GPUs together that are not linked, and none twice", () => {
  fc.assert(
    fc.property(edges, (given) => {
      const linked = new Set(given.flatMap(({ a, b }) => [`${a}-${b}`, `${b}-${a}`]));
      const cliques = disjointCliques(given);
      const all = cliques.flat();
      equal(new Set(all).size, all.length);
      for (const clique of cliques) {
        ok(clique.length >= 2);
        for (const a of clique) {
          for (const b of clique) ok(a === b || linked.has(`${a}-${b}`));
        }
      }
      // Each is maximal among what was left: nobody outside all groups could join one.
      const outside = [...new Set(given.flatMap(({ a, b }) => [a, b]))]
        .filter((vertex) => !all.includes(vertex));
      for (const vertex of outside) {
        for (const clique of cliques) {
          ok(!clique.every((each) => linked.has(`${vertex}-${each}`)));
        }
      }
    }),
    { numRuns: 1_000 },
  );
});

Deno.test("disjointCliques() does not depend on the order of edges", () => {
  fc.assert(
    fc.property(edges, (given) => {
      const turned = given.map(({ a, b }) => ({ a: b, b: a })).reverse();
      equal(JSON.stringify(disjointCliques(turned)), JSON.stringify(disjointCliques(given)));
    }),
    { numRuns: 300 },
  );
});
