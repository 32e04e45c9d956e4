import { match } from "node:assert/strict";
import { tryMutation } from "./mutate.ts";
import { MUTATIONS } from "./mutations.ts";

/** Small clusters are enough for each of these mistakes, and quick. */
const LIMITS = { runs: 400, nodesMax: 12 };

for (const mutation of MUTATIONS) {
  Deno.test(`the simulation notices ${mutation.name} by ${mutation.invariant}`, async () => {
    const { detail } = await tryMutation(mutation, LIMITS);
    match(detail, new RegExp(`^caught by ${mutation.invariant} `));
  });
}
