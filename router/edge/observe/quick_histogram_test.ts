import { equal } from "node:assert/strict";
import { Histogram, Registry } from "prom-client";
import { QuickHistogram } from "./quick_histogram.ts";

const NAMES = { name: "seconds", help: "Time." };
const BUCKETS = [0.1, 0.5, 1];

Deno.test("a QuickHistogram tells what prom-client's own would", async () => {
  const [ours, theirs] = [new Registry(), new Registry()];
  const labelNames = ["model", "replica"] as const;
  const quick = new QuickHistogram({ ...NAMES, labelNames, buckets: BUCKETS, registry: ours });
  const slow = new Histogram({ ...NAMES, labelNames, buckets: BUCKETS, registers: [theirs] });
  for (const labels of [{ model: 'a "b"\\', replica: "r-1" }, { model: "c", replica: "" }]) {
    const series = quick.series(labels);
    for (const value of [0, 0.1, 0.25, 0.5, 0.75, 1, 7]) {
      series.observe(value);
      slow.observe(labels, value);
    }
  }
  equal(await ours.metrics(), await theirs.metrics());
});

Deno.test("a series that was dropped is told no more", async () => {
  const registry = new Registry();
  const histogram = new QuickHistogram({
    ...NAMES,
    labelNames: ["replica"],
    buckets: BUCKETS,
    registry,
    beforeScrape: () => histogram.drop(gone),
  });
  const gone = histogram.series({ replica: "a" });
  histogram.series({ replica: "b" }).observe(1);
  gone.observe(1);
  const text = await registry.metrics();
  equal(text.includes('replica="a"'), false);
  equal(text.includes('seconds_count{replica="b"} 1'), true);
});
