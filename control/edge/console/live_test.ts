import { deepEqual, equal } from "node:assert/strict";
import { Live, type Sink } from "./live.ts";
import type { Frame, Topic } from "./wire.ts";

class Page implements Sink {
  readonly frames: Frame[] = [];
  comments = 0;
  waiting = 0;
  ended = false;

  write(text: string): void {
    for (const block of text.split("\n\n").filter((each) => each !== "")) {
      if (block.startsWith("data: ")) this.frames.push(JSON.parse(block.slice("data: ".length)));
      else this.comments++;
    }
  }

  waitingBytes(): number {
    return this.waiting;
  }

  end(): void {
    this.ended = true;
  }
}

function setUp() {
  const items = new Map<Topic, Map<string, unknown>>([
    ["nodes", new Map<string, unknown>([["n1", { state: "ready" }]])],
    ["models", new Map()],
  ]);
  const looks: Topic[] = [];
  const clock = { now: 0 };
  const live = new Live((topic) => {
    looks.push(topic);
    return new Map(items.get(topic));
  }, () => clock.now);
  const tick = (ms = 1_000) => {
    clock.now += ms;
    live.tick();
  };
  return { live, looks, tick, nodes: items.get("nodes") ?? new Map() };
}

Deno.test("Live sends a page all of what it follows, and then what changed", () => {
  const { live, nodes, tick } = setUp();
  const page = new Page();
  const leave = live.follow(new Set(["nodes", "models"]), page);
  deepEqual(page.frames.map(({ topic, whole, set }) => ({ topic, whole, set })), [
    { topic: "nodes", whole: true, set: { n1: { state: "ready" } } },
    { topic: "models", whole: true, set: {} },
  ]);
  tick();
  equal(page.frames.length, 2, "nothing changed, nothing is sent");
  nodes.set("n2", { state: "lost" });
  nodes.delete("n1");
  tick();
  const { set, gone, whole } = page.frames.at(-1) ?? {};
  deepEqual({ set, gone, whole }, { set: { n2: { state: "lost" } }, gone: ["n1"], whole: false });
  leave?.();
});

Deno.test("Live looks once for all pages, and not at all once they are gone", () => {
  const { live, looks, tick } = setUp();
  const leaves = [new Page(), new Page(), new Page()].map((page) =>
    live.follow(new Set(["nodes"]), page)
  );
  looks.length = 0;
  tick();
  deepEqual(looks, ["nodes"]);
  for (const leave of leaves) leave?.();
  equal(live.size, 0);
  looks.length = 0;
  tick();
  deepEqual(looks, []);
});

Deno.test("Live gives a page that was slow all of it again, and lets one go that stays so", () => {
  const { live, nodes, tick } = setUp();
  const [slow, stuck] = [new Page(), new Page()];
  const leave = live.follow(new Set(["nodes"]), slow);
  live.follow(new Set(["nodes"]), stuck);
  slow.waiting = stuck.waiting = 2_000_000;
  for (let count = 0; count < 5; count++) {
    nodes.set("n1", { count });
    tick();
  }
  equal(slow.frames.length, 1, "nothing is queued for it");
  slow.waiting = 0;
  tick();
  const { whole, set } = slow.frames.at(-1) ?? {};
  deepEqual({ whole, set }, { whole: true, set: { n1: { count: 4 } } });
  tick(60_000);
  tick();
  deepEqual([stuck.ended, slow.ended, live.size], [true, false, 1]);
  leave?.();
});

Deno.test("Live says that it lives where nothing changes, and refuses one page too many", () => {
  const { live, tick } = setUp();
  const page = new Page();
  live.follow(new Set(["nodes"]), page);
  tick(10_000);
  equal(page.comments, 1);
  while (live.size < 64) live.follow(new Set(["nodes"]), new Page());
  equal(live.follow(new Set(["nodes"]), new Page()), undefined);
  live.close();
  deepEqual([live.size, page.ended], [0, true]);
});
