/**
 * The same shapes of traffic on a clock that costs no time, with the router's own scheduling and the
 * simulated engines' own model: nothing else of the machine disturbs, so that small differences
 * show. Only Heddle's own scorers can be compared so, all of them or some.
 *
 *   deno run -P=test tests/bench/scheduling/simulated.ts [SECONDS] [SEEDS]
 */
import type { Band } from "../../../router/core/admission/band.ts";
import type { BandBounds } from "../../../router/core/admission/model_queue.ts";
import type { Weights } from "../../../router/core/schedule/scorers.ts";
import { say } from "../../../tools/say.ts";
import { SimulatedFleet, type SimulatedRequest } from "../../scheduling/simulated_fleet.ts";
import type { Measured } from "./drive.ts";
import { REPLICAS } from "./engines.ts";
import { print } from "./report.ts";
import { type Arrival, type Shape, SHAPES } from "./shapes.ts";
import { WEIGHTS } from "./weights.ts";

const BOUND: BandBounds = {
  requestsMax: 10_000,
  bytesMax: 1e12,
  waitMsMax: 600_000,
  promoteAfterMs: 60_000,
};
const BOUNDS = { platinum: BOUND, gold: BOUND, silver: BOUND, bronze: BOUND };
const BAND: Band = "silver";

function engine(part: number) {
  return {
    contextTokensMax: 8_192,
    sequencesMax: 32,
    blockCount: 2_000,
    overheadMs: 5,
    speed: {
      prefillTokensPerS: 4_000 * part,
      decodeTokensPerS: 25 * part,
      decodeTokensPerSTotal: 300 * part,
    },
  };
}

const ids = new Map<string, number>();

/** A token for each word, the same for the same word. */
function tokensOf({ messages }: Arrival): readonly number[] {
  return messages.flatMap(({ role, content }) =>
    [role, ...content.split(" ")].map((word) => {
      const known = ids.get(word) ?? ids.size + 1_000;
      ids.set(word, known);
      return known;
    })
  );
}

function requestOf(arrival: Arrival): SimulatedRequest {
  const prompt = tokensOf(arrival);
  return {
    at: arrival.at,
    band: BAND,
    tenant: "t",
    promptTokens: prompt.length,
    prompt: () => prompt,
    answerTokens: arrival.answerTokens,
  };
}

function measure(
  shape: Shape,
  weights: Weights,
  { seconds, seed }: { readonly seconds: number; readonly seed: number },
): readonly Measured[] {
  const fleet = new SimulatedFleet({
    replicas: REPLICAS,
    bounds: BOUNDS,
    weights,
    engine: engine(1),
    firstEngine: engine(shape.trouble === "slow" ? 0.25 : 1),
    seed,
  });
  fleet.arrive(shape.arrivals({ seconds, seed, salt: "s" }).map(requestOf));
  fleet.run((seconds + 120) * 1_000);
  return fleet.fates.map(({ request, firstTokenAt, endedAt, outcome, cachedTokens }) => ({
    ok: outcome === "served",
    firstMs: (firstTokenAt ?? NaN) - request.at,
    tokenMs: ((endedAt ?? NaN) - (firstTokenAt ?? NaN)) / (request.answerTokens - 1),
    promptTokens: request.promptTokens,
    cachedTokens,
  }));
}

if (import.meta.main) {
  const seconds = Number(Deno.args[0] ?? 60);
  const seeds = Number(Deno.args[1] ?? 3);
  const only = Deno.args[2]?.split(",");
  for (const shape of SHAPES) {
    if (shape.trouble === "lost") continue;
    const rows = Object.entries(WEIGHTS).filter(([name]) => only?.includes(name) ?? true)
      .map(([name, weights]) =>
        [
          name,
          Array.from({ length: seeds }, (_, index) =>
            measure(shape, weights, { seconds, seed: index + 1 })).flat(),
        ] as const
      );
    print(shape, rows, seconds * seeds);
  }
  say("Policies by chance and by least requests are Heddle's own, with no other scorer.");
}
