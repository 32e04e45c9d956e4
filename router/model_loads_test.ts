import { deepEqual, equal } from "node:assert/strict";
import { bucketOf } from "@heddle/proto/first_content_times";
import type { WaitingCount } from "./core/admission/admission.ts";
import { ModelLoads } from "./model_loads.ts";

const ENDED = {
  model: "m",
  outcome: "ok",
  stream: true,
  durationMs: 500,
  firstContentMs: 100,
  usage: { promptTokens: 40, completionTokens: 5, cachedTokens: 30 },
} as const;

const NOTHING = { waiting: new Map<string, number>(), queued: () => [] };

/** The counts of one request in the bucket of `ms`. */
const once = (ms: number) => [...Array<number>(bucketOf(ms)).fill(0), 1];

Deno.test("ModelLoads counts first content of streams only, and the cache where an engine tells", () => {
  const loads = new ModelLoads(() => undefined);
  loads.count(ENDED);
  loads.count({ ...ENDED, stream: false });
  loads.count({ ...ENDED, firstContentMs: undefined, usage: undefined });
  loads.count({
    ...ENDED,
    firstContentMs: undefined,
    usage: { promptTokens: 9, completionTokens: 1 },
  });
  const [load] = loads.since(NOTHING);
  deepEqual(load?.firstContent, once(100));
  deepEqual([load?.requests, load?.promptTokens, load?.cachedTokens], [4, 80, 60]);
});

Deno.test("ModelLoads takes away what a report carried, and keeps what came meanwhile", () => {
  const loads = new ModelLoads(() => undefined);
  loads.count(ENDED);
  const carried = loads.since(NOTHING);
  loads.count({ ...ENDED, firstContentMs: 3 });
  loads.reported(carried);
  const [load] = loads.since(NOTHING);
  deepEqual(load?.firstContent, once(3));
  deepEqual([load?.requests, load?.promptTokens, load?.cachedTokens], [1, 40, 30]);
  deepEqual(carried[0]?.firstContent, once(100), "a report does not change once it is made");
  loads.reported(loads.since(NOTHING));
  equal(loads.since(NOTHING).length, 0);
});

Deno.test("ModelLoads tells by band who waits for room; what is held for a sleeping model has no band", () => {
  const loads = new ModelLoads(() => undefined);
  const count = (model: string, band: WaitingCount["band"], requests: number) => ({
    model,
    band,
    requests,
    bytes: 0,
  });
  const queued = () => [count("m", "gold", 2), count("m", "bronze", 5), count("other", "gold", 1)];
  const told = loads.since({ waiting: new Map([["m", 10], ["other", 1]]), queued });
  deepEqual(told.map(({ model, waiting, queued }) => ({ model, waiting, queued })), [
    { model: "m", waiting: 10, queued: { platinum: 0, gold: 2, silver: 0, bronze: 5 } },
    { model: "other", waiting: 1, queued: { platinum: 0, gold: 1, silver: 0, bronze: 0 } },
  ]);
});
