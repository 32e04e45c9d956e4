import { deepEqual, equal, match, rejects } from "node:assert/strict";
import { Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { RouterService } from "@heddle/proto/gen/router";
import { parseCatalog } from "../core/catalog.ts";
import type { RouterEvent } from "../core/event.ts";
import { NO_DECISIONS, startWorld, type World } from "../core/world.ts";
import { Listener, REALM } from "./listener_fake.ts";
import { routerRpc } from "./router_rpc.ts";
import { WatchHub } from "./watch/hub.ts";
import { endpoint, FakeRouter, NOTHING } from "./watch/publication_fake.ts";

const CATALOG = `
models:
  - {name: demo, aliases: [default], source: s, profiles: [{name: p, engine: sim}]}
  - {name: held, source: s, profiles: [{name: p, engine: sim}]}
`;
const NOW = 1_000;

function worldOf(parts: Partial<World> = {}): World {
  const parsed = parseCatalog(CATALOG, "c");
  if (parsed.kind !== "ok") throw new Error("the catalog of this test is wrong");
  const paused = new Map([["held", { by: "ann", reason: "tests", at: 0 }]]);
  const world = startWorld({
    cluster: "test",
    storedTerm: 0,
    catalog: { catalog: parsed.value, text: CATALOG, revision: 1 },
    knownNodes: new Set(),
    decisions: { ...NO_DECISIONS, paused },
  }, 0);
  return { ...world, ...parts };
}

async function bench(world: World = worldOf()) {
  const events: RouterEvent[] = [];
  const hub = new WatchHub(NOTHING);
  const loop = {
    dispatch(event: RouterEvent) {
      events.push(event);
      return Promise.resolve();
    },
    world: () => world,
    now: () => NOW,
  };
  const listener = await Listener.start({
    roles: ["agent", "router"],
    routes: (router) => router.service(RouterService, routerRpc({ realm: REALM, hub, loop })),
  });
  return {
    events,
    hub,
    listener,
    client: async (name: string) =>
      createClient(RouterService, await listener.connect("router", name)),
    [Symbol.asyncDispose]: () => listener[Symbol.asyncDispose](),
  };
}

Deno.test("RouterService.Watch gives a snapshot and deltas until the router leaves", async () => {
  await using control = await bench();
  const leave = new AbortController();
  const client = await control.client("a-1");
  const stream = client.watch({ router: "a/1" }, { signal: leave.signal })[Symbol.asyncIterator]();
  const router = new FakeRouter();
  const receive = async () => router.receive((await stream.next()).value);
  await receive();
  control.hub.publish({
    ...NOTHING,
    revision: { term: 1, sequence: 1 },
    endpoints: new Map([["r0", endpoint("r0", 7)]]),
  });
  await receive();
  deepEqual(router.revision, { term: 1, sequence: 1 });
  equal(router.endpoints.get("r0")?.apiKey, "sk-heddle-r0");
  equal(router.endpoints.get("r0")?.weight, 7);
  leave.abort();
  await rejects(stream.next());
});

Deno.test("RouterService refuses another router's certificate, another role's, and none", async () => {
  await using control = await bench();
  const { listener } = control;
  const watch = async (transport: Transport, router: string) => {
    const stream = createClient(RouterService, transport).watch({ router });
    for await (const _ of stream) return;
  };
  const cases = [
    [await listener.connect("router", "b"), "a/1", /certificate is that of router "b"/],
    [await listener.connect("router", "a"), "ab/1", /certificate is that of router "a"/],
    [await listener.connect("agent", "a"), "a/1", /want role router of cluster "test"/],
    [await listener.connect("router", "a", "other"), "a/1", /heddle\/other\/router\/a/],
  ] as const;
  for (const [transport, router, words] of cases) {
    const refused = (error: unknown) => {
      const { code, rawMessage } = ConnectError.from(error);
      equal(code, Code.PermissionDenied);
      match(rawMessage, words);
      return true;
    };
    await rejects(watch(transport, router), refused);
    await rejects(createClient(RouterService, transport).report({ router }), refused);
    await rejects(createClient(RouterService, transport).wake({ router, model: "demo" }), refused);
  }
  await rejects(watch(listener.connectBare(), "a/1"));
  for (const router of ["", "/", "a/1/2", "a b"]) {
    await rejects(watch(await listener.connect("router", "a"), router), /Cannot serve router/);
  }
  equal(control.hub.size, 0);
  deepEqual(control.events, []);
});

Deno.test("RouterService lets a host's routers share a certificate or have their own", async () => {
  await using control = await bench();
  for (const [certificate, router] of [["a", "a"], ["a", "a/2"], ["a-2", "a/2"]] as const) {
    await (await control.client(certificate)).report({ router });
  }
  equal(control.events.length, 3);
});

Deno.test("RouterService.Report passes on what a router has and tells what leased others have", async () => {
  const other = (name: string, leaseUntil: number, inFlight: number) =>
    [name, {
      name,
      version: "",
      instance: "",
      leaseUntil,
      lastReportAt: 0,
      applied: { term: 1, sequence: 0 },
      replicas: new Map([["r0", { inFlight, reservedTokens: 10 * inFlight }]]),
      models: new Map(),
    }] as const;
  const routers = new Map([
    other("a/1", NOW + 1, 100),
    other("b/1", NOW + 1, 3),
    other("c/1", NOW + 1, 4),
    other("gone/1", NOW, 1_000),
  ]);
  await using control = await bench(worldOf({ routers }));
  const client = await control.client("a");
  const answer = await client.report({
    router: "a/1",
    routerInstance: "i",
    applied: { term: 1n, sequence: 9n },
    replicas: [{ replicaId: "r0", inFlight: 5, reservedTokens: 50 }],
    models: [{ model: "demo", waiting: 2, requests: 3, failures: 1 }],
  });
  equal(answer.leaseMs, 10_000);
  deepEqual(
    answer.others.map(({ replicaId, inFlight, reservedTokens }) => [
      replicaId,
      inFlight,
      reservedTokens,
    ]),
    [["r0", 7, 70]],
  );
  const [event] = control.events;
  equal(event?.kind, "router_report");
  if (event?.kind !== "router_report") return;
  deepEqual(event.applied, { term: 1, sequence: 9 });
  equal(event.instance, "i");
  equal(event.replicas.get("r0")?.inFlight, 5);
  equal(event.models.get("demo")?.waiting, 2);
});

Deno.test("RouterService.Wake answers at once with what becomes of it", async () => {
  const awake = endpoint("r0");
  awake.model = "demo";
  const published = { ...NOTHING, endpoints: new Map([["r0", awake]]) };
  await using asleep = await bench();
  await using running = await bench(worldOf({ published }));
  const wake = async (control: typeof asleep, model: string) => {
    const client = await control.client("a");
    const { accepted, reason } = await client.wake({ router: "a/1", model });
    return [accepted, reason];
  };
  deepEqual(await wake(asleep, "default"), [true, ""]);
  deepEqual(await wake(running, "demo"), [true, "already_running"]);
  deepEqual(await wake(asleep, "dmo"), [false, "model_unknown"]);
  deepEqual(await wake(asleep, "held"), [false, "paused"]);
  deepEqual(asleep.events, [{ kind: "wake", model: "demo" }]);
});
