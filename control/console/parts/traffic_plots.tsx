/** An hour of a model's traffic, going on while it is looked at. */
import { useEffect, useState } from "preact/hooks";
import type { TrafficHistory, TrafficSample } from "../../edge/console/wire.ts";
import { trafficOf, wordsOf } from "../call.ts";
import { Notice } from "./notice.tsx";
import { Plot } from "./plot.tsx";

/** An hour at a sample every ten seconds: as much as control keeps. */
const SAMPLES_MAX = 360;

export function TrafficPlots(
  { model, latest }: {
    readonly model: string;
    /** The newest sample, pushed. */
    readonly latest: TrafficSample | undefined;
  },
) {
  const [history, setHistory] = useState<TrafficHistory | string | undefined>();
  useEffect(() => {
    let stale = false;
    trafficOf(model).then(
      (found) => stale || setHistory(found),
      (error: unknown) => stale || setHistory(wordsOf(error)),
    );
    return () => {
      stale = true;
    };
  }, [model]);
  useEffect(() => {
    if (latest === undefined) return;
    setHistory((before) =>
      typeof before !== "object" || (before.atS.at(-1) ?? 0) >= latest.atS
        ? before
        : withSample(before, latest)
    );
  }, [latest?.atS, model]);
  if (history === undefined) return <p class="quiet">Asking…</p>;
  if (typeof history === "string") return <Notice tone="bad">{history}</Notice>;
  if (history.atS.length === 0) {
    return <p class="quiet">No sample yet; there is one every ten seconds.</p>;
  }
  return <Plots history={history} />;
}

function Plots({ history }: { readonly history: TrafficHistory }) {
  const { atS, requests, failures, sloMisses, inFlight, waiting } = history;
  return (
    <div class="plots">
      <Plot
        title="Requests a second"
        atS={atS}
        lines={[
          { label: "answered", colour: "accent", values: requests },
          { label: "failed", colour: "bad", values: failures },
          { label: "missed the slo", colour: "busy", values: sloMisses },
        ]}
      />
      <Plot
        title="Requests at a time"
        atS={atS}
        lines={[
          { label: "in flight", colour: "accent", values: inFlight },
          { label: "waiting", colour: "busy", values: waiting },
        ]}
      />
      <Plot
        title="Time to first token of streams, s"
        atS={atS}
        lines={[
          { label: "p50", colour: "accent", values: history.ttftP50Ms.map(seconds) },
          { label: "p99", colour: "busy", values: history.ttftP99Ms.map(seconds) },
        ]}
      />
      <Plot
        title="Queue by band"
        atS={atS}
        lines={[
          { label: "platinum", colour: "accent", values: history.platinum },
          { label: "gold", colour: "busy", values: history.gold },
          { label: "silver", colour: "quiet", values: history.silver },
          { label: "bronze", colour: "bad", values: history.bronze },
        ]}
      />
      <Plot
        title="Prompt tokens found in engines' caches, %"
        atS={atS}
        lines={[{ label: "cached", colour: "good", values: history.cacheShare.map(percent) }]}
      />
    </div>
  );
}

function seconds(ms: number | null): number | null {
  return ms === null ? null : ms / 1_000;
}

function percent(share: number | null): number | null {
  return share === null ? null : Math.round(share * 1_000) / 10;
}

function withSample(before: TrafficHistory, sample: TrafficSample): TrafficHistory {
  const add = <Value,>(column: readonly Value[], value: Value) =>
    [...column, value].slice(-SAMPLES_MAX);
  return {
    atS: add(before.atS, sample.atS),
    requests: add(before.requests, sample.requests),
    failures: add(before.failures, sample.failures),
    sloMisses: add(before.sloMisses, sample.sloMisses),
    inFlight: add(before.inFlight, sample.inFlight),
    waiting: add(before.waiting, sample.waiting),
    platinum: add(before.platinum, sample.platinum),
    gold: add(before.gold, sample.gold),
    silver: add(before.silver, sample.silver),
    bronze: add(before.bronze, sample.bronze),
    ttftP50Ms: add(before.ttftP50Ms, sample.ttftP50Ms),
    ttftP99Ms: add(before.ttftP99Ms, sample.ttftP99Ms),
    cacheShare: add(before.cacheShare, sample.cacheShare),
  };
}
