import { deepEqual, equal } from "node:assert/strict";
import type { AttachedProved } from "../../core/attach/observe.ts";
import { observe } from "../../core/observing/observe.ts";
import { modelOf, T0, worldWith } from "../../core/testing/builders.ts";
import type { World } from "../../core/world.ts";
import { Prover } from "./prover.ts";

const ID = "rented/e1";
const MODEL = { ...modelOf({ name: "demo" }), attach: ["rented"] };

interface Engine extends AsyncDisposable {
  readonly endpoint: string;
  readonly asked: string[];
}

/** An engine that demands a key, and answers by path. */
function engine(replies: Readonly<Record<string, unknown>> = {}): Engine {
  const asked: string[] = [];
  const given: Readonly<Record<string, unknown>> = {
    "/health": {},
    "/v1/models": { data: [{ id: "demo", max_model_len: 4096 }] },
    "/v1/completions": { choices: [{ text: "x" }] },
    ...replies,
  };
  const server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen: () => {} }, (request) => {
    const { pathname } = new URL(request.url);
    asked.push(pathname);
    const own = request.headers.get("authorization") === "Bearer own-key";
    return own ? Response.json(given[pathname] ?? null) : new Response("who?", { status: 401 });
  });
  return {
    endpoint: `127.0.0.1:${server.addr.port}`,
    asked,
    [Symbol.asyncDispose]: () => server.shutdown(),
  };
}

/** A world in which the engine is attached, and a prover whose finds end in `proofs`. */
function attached(endpoint: string, apiKey = "own-key") {
  const { timings, ...rest } = worldWith([MODEL], {});
  const world: World = observe(
    { ...rest, timings: { ...timings, attachLeaseMs: 30_000 } },
    {
      kind: "attached_claimed",
      deployment: "rented",
      from: "127.0.0.1",
      claim: {
        ...{ engineId: "e1", model: "demo", provider: "", endpoint, apiKey },
        ...{ state: "serving", reason: "", message: "", agentVersion: "1", agentInstance: "a" },
        nodes: [{ index: 0, hostId: "", cards: [], cardsRead: true }],
      },
    },
    T0,
  );
  const stop = new AbortController();
  const first = Promise.withResolvers<AttachedProved>();
  let count = 0;
  const prover = new Prover({
    loop: {
      dispatch(event) {
        count++;
        first.resolve(event);
        return Promise.resolve();
      },
      world: () => world,
      now: () => T0,
    },
    signal: stop.signal,
  });
  return { prover, stop, proof: first.promise, count: () => count };
}

Deno.test("Prover asks an engine for health, its model and a token, once at a time, with its own key", async () => {
  await using there = engine();
  const { prover, proof, count } = attached(there.endpoint);
  prover.consider(ID);
  prover.consider(ID);
  const { engine: id, outcome } = await proof;
  deepEqual([id, outcome, count()], [ID, { kind: "ready", maxModelLen: 4096 }, 1]);
  deepEqual(there.asked, ["/health", "/v1/models", "/v1/completions"]);
});

Deno.test("Prover says what is missing in words for whoever started the engine", async () => {
  await using there = engine();
  const { prover, proof } = attached(there.endpoint, "another");
  prover.consider(ID);
  const { outcome } = await proof;
  equal(outcome.kind === "wrong" && outcome.reason, "wrong_key");
  equal(
    outcome.kind === "wrong" && outcome.why,
    "it refuses the key: set HEDDLE_ENGINE_API_KEY to the engine's own",
  );
});

Deno.test("Prover takes an engine that lists another model for none that serves", async () => {
  await using there = engine({ "/v1/models": { data: [{ id: "other" }] } });
  const { prover, proof } = attached(there.endpoint);
  prover.consider(ID);
  const { outcome } = await proof;
  equal(outcome.kind === "wrong" && outcome.reason, "model_not_listed");
});

Deno.test("Prover asks nobody once its control leads no more", async () => {
  await using there = engine();
  const { prover, stop, count } = attached(there.endpoint);
  stop.abort();
  prover.consider(ID);
  prover.consider("rented/unknown");
  deepEqual([there.asked, count()], [[], 0]);
});
