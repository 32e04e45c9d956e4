import { deepEqual, equal, match, ok } from "node:assert/strict";
import type { Candidate } from "./candidate.ts";
import { candidate, onlyInFlight, wanted } from "./candidate_fake.ts";
import { explanation } from "./explanation.ts";
import { pick } from "./pick.ts";

const ABOUT = { band: "gold", profile: "chat", waitedMs: 12.3, why: "saturated" } as const;

function explained(candidates: readonly Candidate[]): string {
  const picked = pick({
    candidates,
    wanted: wanted(),
    weights: { ...onlyInFlight, kv_cache: 1 },
    chance: 0,
    now: 0,
  });
  if (picked.kind === "none") throw new Error("nothing was picked");
  return explanation(picked, wanted(), ABOUT);
}

Deno.test("explanation() tells the wait, every candidate's scores and why others do not count", () => {
  const text = explained([
    candidate("a", { inFlight: 2, kvUsage: 0.5 }),
    candidate("b", { cachedTokens: 64 }),
    candidate("c", {}, { draining: true }),
  ]);
  deepEqual(JSON.parse(text), {
    replica: "b",
    band: "gold",
    waited_ms: 12,
    waited_for: "saturated",
    profile: "chat",
    candidates: [
      {
        replica: "b",
        score: 0.75,
        scores: { kv_cache: null, in_flight: 1 },
        in_flight: 0,
        cached_tokens: 64,
        first_token_ms: 54,
      },
      {
        replica: "a",
        score: 0.5,
        scores: { kv_cache: 0.5, in_flight: 0.5 },
        in_flight: 2,
        cached_tokens: 0,
        first_token_ms: 60,
      },
    ],
    rejected: [{ replica: "c", reason: "draining" }],
  });
});

Deno.test("explanation() fits a header however many candidates there are, and whatever their names", () => {
  const text = explained(Array.from({ length: 1_000 }, (_, index) => candidate(`ré\n${index}`)));
  ok(text.length <= 8_192);
  match(text, /^[\x20-\x7e]+$/);
  const parsed = JSON.parse(text);
  ok(parsed.candidates.length > 20);
  equal(parsed.candidates.length + parsed.left_out, 1_000);
});
