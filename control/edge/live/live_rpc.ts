/** What operators are shown of the moment: what changes its state, and how much is asked of models. */
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { delay } from "@heddle/common/task";
import { HeddleError } from "@heddle/proto/error";
import type { LiveService } from "@heddle/proto/gen/live";
import type { Happenings } from "./happenings.ts";
import type { Traffic } from "../console/traffic.ts";
import { ALL_MODELS, type TrafficSample } from "../console/wire.ts";

/** Events are found by a look every two seconds; asking more often finds nothing. */
const ASK_EVERY_MS = 1_000;

/** Each holds a stream open; people who look are few. */
const FOLLOWERS_MAX = 64;

export interface LiveRpcOptions {
  /** Throws for a caller who is no operator. */
  readonly by: (context: HandlerContext) => string;
  /** Throws, saying who does, while this control does not lead. */
  readonly demandLead: () => void;
  readonly happenings: () => Pick<Happenings, "events">;
  readonly traffic: () => Pick<Traffic, "latest">;
}

export function liveRpc(options: LiveRpcOptions): ServiceImpl<typeof LiveService> {
  const { by, demandLead, happenings, traffic } = options;
  // Numbers of events begin anew with the process.
  const source = crypto.randomUUID();
  let followers = 0;
  const since = (last: number) =>
    [...happenings().events()].flatMap(([id, { atMs, ...event }]) =>
      Number(id) > last ? [{ ...event, number: BigInt(Number(id)), atMs: BigInt(atMs) }] : []
    );
  return {
    async *watchEvents({ follow, after, source: asked }, context) {
      by(context);
      demandLead();
      let events = since(asked === source ? Number(after) : 0);
      yield { source, events };
      if (!follow) return;
      if (followers >= FOLLOWERS_MAX) {
        const text = `Cannot follow events: ${FOLLOWERS_MAX} follow them already`;
        throw new HeddleError("exhausted", text);
      }
      followers++;
      try {
        let last = Number(events.at(-1)?.number ?? after);
        while (!context.signal.aborted) {
          await delay(ASK_EVERY_MS, context.signal);
          demandLead();
          events = since(last);
          if (events.length > 0) yield { source, events };
          last = Number(events.at(-1)?.number ?? last);
        }
      } finally {
        followers--;
      }
    },
    listTraffic(_request, context) {
      by(context);
      demandLead();
      const models = [...traffic().latest()].map(([model, sample]) => messageOf(model, sample));
      const all = models.find(({ model }) => model === ALL_MODELS);
      return {
        models: models.filter(({ model }) => model !== ALL_MODELS),
        ...(all === undefined ? {} : { all: { ...all, model: "" } }),
      };
    },
  };
}

function messageOf(model: string, { requests, failures, sloMisses, ...sample }: TrafficSample) {
  return {
    model,
    requestsPerSecond: requests,
    failuresPerSecond: failures,
    sloMissesPerSecond: sloMisses,
    inFlight: sample.inFlight,
    waiting: sample.waiting,
    ...(sample.ttftP50Ms === null ? {} : { ttftP50Ms: sample.ttftP50Ms }),
    ...(sample.ttftP99Ms === null ? {} : { ttftP99Ms: sample.ttftP99Ms }),
    ...(sample.cacheShare === null ? {} : { cacheHitShare: sample.cacheShare }),
    ...queueOf(sample),
  };
}

function queueOf(
  { platinum, gold, silver, bronze }: Pick<
    TrafficSample,
    "platinum" | "gold" | "silver" | "bronze"
  >,
) {
  const known = platinum !== null && gold !== null && silver !== null && bronze !== null;
  return known ? { queue: { platinum, gold, silver, bronze } } : {};
}
