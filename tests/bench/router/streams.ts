/**
 * `deno run -P=test tests/bench/router/streams.ts [COUNT]`: 2,000 streams open at a time, each with an
 * event a second: what they cost in memory, and how much later an event comes than without a router.
 */
import { say } from "../../../tools/say.ts";
import { run, type Target } from "./client.ts";
import { percentile } from "./measure.ts";
import { withHeddle } from "./stage.ts";

const COUNT = Number(Deno.args[0] ?? 2_000);
const EVENTS = 12;
const GAP_MS = 1_000;

const BODY = JSON.stringify({
  stream: true,
  bench_events: EVENTS,
  bench_gap_ms: GAP_MS,
  model: "m",
  messages: [{ role: "user", content: "word ".repeat(200) }],
});

/** Every stream once; the events' delay, without the first one of each, which waits for its turn. */
async function delays(target: Target): Promise<readonly number[]> {
  const { chunk, failures } = await run({ target, connections: COUNT, seconds: 0.001, body: BODY });
  if (failures > 0) say(`${failures} streams failed`);
  return chunk;
}

if (import.meta.main) {
  await withHeddle(async ({ router, enginePort }) => {
    const direct = await delays({ ...router.target, port: enginePort });
    const before = (await router.process.cost()).memoryMib;
    const running = delays(router.target);
    await new Promise((resolve) => setTimeout(resolve, EVENTS * GAP_MS / 2));
    const open = await router.process.cost();
    const through = await running;
    const after = await router.process.cost();
    const kib = (open.memoryMib - before) * 1_024 / COUNT;
    say(
      `${COUNT} streams: ${before.toFixed(0)} MiB before, ${open.memoryMib.toFixed(0)} MiB while ` +
        `they are open (${kib.toFixed(0)} KiB each), ${after.memoryMib.toFixed(0)} MiB after`,
    );
    for (const share of [0.5, 0.99]) {
      const [a, b] = [percentile(direct, share), percentile(through, share)];
      say(
        `events p${share * 100}: ${a.toFixed(2)} ms without, ${b.toFixed(2)} ms through Heddle ` +
          `(+${(b - a).toFixed(2)})`,
      );
    }
  });
}
