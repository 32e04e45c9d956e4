import { deepEqual, equal, match, rejects } from "node:assert/strict";
import { Code, ConnectError } from "@connectrpc/connect";
import { HeddleError } from "@heddle/proto/error";
import { AgentService } from "@heddle/proto/gen/agent";
import { EMPTY_CATALOG } from "../core/catalog.ts";
import type { AgentEvent } from "../core/event.ts";
import { NO_DECISIONS, startWorld } from "../core/world.ts";
import { AgentStream, type Fact, registration } from "./agent_fake.ts";
import { agentRpc } from "./agent_rpc.ts";
import { Listener, REALM } from "./listener_fake.ts";
import { LogRequests } from "./log_requests.ts";
import { NodeRequests } from "./node_requests.ts";
import { NODE_QUEUE_MAX, NodeStreams } from "./node_streams.ts";

const world = startWorld({
  cluster: "test",
  storedTerm: 6,
  catalog: { catalog: EMPTY_CATALOG, text: "", revision: 0 },
  knownNodes: new Set(),
  decisions: NO_DECISIONS,
}, 0);

/** Control's agent side, with a loop that writes down what it is given. */
async function bench(options: { refuse?: HeddleError; registerMs?: number } = {}) {
  const events: AgentEvent[] = [];
  const wanted: { kind: AgentEvent["kind"]; resolve: () => void }[] = [];
  const loop = {
    // deno-lint-ignore require-await -- a refusal comes in its promise
    async dispatch(event: AgentEvent) {
      if (options.refuse !== undefined && event.kind !== "stream_closed") throw options.refuse;
      events.push(event);
      for (const { kind, resolve } of wanted) if (kind === event.kind) resolve();
    },
    world: () => world,
  };
  const streams = new NodeStreams((node) => {
    logs.nodeGone(node);
    void loop.dispatch({ kind: "stream_closed", node });
  });
  const logs = new LogRequests((node, message) => streams.send(node, message));
  const requests = new NodeRequests((node, message) => streams.send(node, message));
  const registerMs = options.registerMs ?? 10_000;
  const listener = await Listener.start({
    roles: ["agent", "router"],
    routes: (router) =>
      router.service(
        AgentService,
        agentRpc({ realm: REALM, streams, logs, requests, loop, registerMs }),
      ),
  });
  return {
    events,
    kinds: () => events.map(({ kind }) => kind),
    /** Resolves once the loop has been given such an event. */
    seen: (kind: AgentEvent["kind"]) =>
      events.some((event) => event.kind === kind)
        ? Promise.resolve()
        : new Promise<void>((resolve) => wanted.push({ kind, resolve })),
    streams,
    logs,
    listener,
    async agent(name: string, first: Fact = registration(name)) {
      const stream = new AgentStream(await listener.connect("agent", name));
      stream.send(first);
      return stream;
    },
    [Symbol.asyncDispose]: () => listener[Symbol.asyncDispose](),
  };
}

const refused = (code: Code, words: RegExp) => (error: unknown) => {
  const { code: found, rawMessage } = ConnectError.from(error);
  equal(found, code, rawMessage);
  match(rawMessage, words);
  return true;
};

Deno.test("AgentService answers a registration and turns what follows into events", async () => {
  await using control = await bench();
  const agent = await control.agent("n1");
  const answer = await agent.expect("registered");
  deepEqual({ term: answer.term, heartbeat: answer.heartbeatIntervalMs, settled: answer.settled }, {
    term: 7n,
    heartbeat: 5_000,
    settled: false,
  });
  agent.send({ case: "heartbeat", value: { memoryBytes: 5n } });
  agent.send({ case: "shardStatus", value: { shardId: "s" } });
  agent.send({ case: "commandResult", value: { shardId: "s", accepted: true } });
  agent.end();
  await control.seen("stream_closed");
  deepEqual(control.kinds(), [
    "registered",
    "heartbeat",
    "shard_status",
    "command_result",
    "stream_closed",
  ]);
  deepEqual(new Set(control.events.map((event) => event.node)), new Set(["n1"]));
});

Deno.test("AgentService refuses a stream whose first message is not Register", async () => {
  await using control = await bench({ registerMs: 50 });
  const impatient = await control.agent("n1", { case: "heartbeat", value: {} });
  await rejects(
    impatient.next(),
    refused(Code.FailedPrecondition, /first message must be Register, not heartbeat/),
  );
  const silent = new AgentStream(await control.listener.connect("agent", "n1"));
  await rejects(silent.next(), refused(Code.DeadlineExceeded, /did not register in time/));
  silent.end();
  impatient.end();
  deepEqual(control.events, []);
});

Deno.test("AgentService refuses another node's certificate, another role's, and none", async () => {
  await using control = await bench();
  const { listener } = control;
  const cases = [
    [await listener.connect("agent", "n2"), /certificate is that of node "n2"/],
    [await listener.connect("router", "n1"), /want role agent of cluster "test"/],
    [await listener.connect("agent", "n1", "other"), /spiffe:\/\/heddle\/other\/agent\/n1/],
    [await listener.connect("operator", "n1"), /role operator, want agent or router/],
  ] as const;
  for (const [transport, words] of cases) {
    const stream = new AgentStream(transport);
    stream.send(registration("n1"));
    await rejects(stream.next(), refused(Code.PermissionDenied, words));
    stream.end();
  }
  const bare = new AgentStream(listener.connectBare());
  bare.send(registration("n1"));
  await rejects(bare.next());
  bare.end();
  deepEqual(control.events, []);
});

Deno.test("AgentService refuses registrations that say too little, or what the loop refuses", async () => {
  await using control = await bench();
  const cases: [Fact, RegExp][] = [
    [{ case: "register", value: { node: "n1", address: "10.0.0.1" } }, /sent no inventory/],
    [{ case: "register", value: { node: "n1", inventory: {} } }, /sent no address/],
  ];
  for (const [first, words] of cases) {
    const agent = await control.agent("n1", first);
    await rejects(agent.next(), refused(Code.InvalidArgument, words));
    agent.end();
  }
  const nameless = await control.agent("n1", registration("../n1"));
  await rejects(nameless.next(), refused(Code.InvalidArgument, /Cannot register node "..\/n1"/));
  nameless.end();
  await using broken = await bench({ refuse: new HeddleError("system", "the disk is full") });
  const agent = await broken.agent("n1");
  await rejects(agent.next(), refused(Code.Unknown, /the disk is full/));
  agent.end();
});

Deno.test("AgentService replaces a node's stream by its newest one, which says nothing of the node", async () => {
  await using control = await bench();
  const older = await control.agent("n1");
  await older.expect("registered");
  const newer = await control.agent("n1");
  await newer.expect("registered");
  await rejects(older.next(), refused(Code.FailedPrecondition, /the node has opened a newer one/));
  older.send({ case: "heartbeat", value: {} });
  older.end();
  control.streams.send("n1", { case: "cancelLog", value: { requestId: "x" } });
  equal((await newer.expect("cancelLog")).requestId, "x");
  deepEqual(control.kinds(), ["registered", "registered"]);
  newer.abort();
  await control.seen("stream_closed");
});

Deno.test("AgentService takes a registration on a live stream again, but not as another node", async () => {
  await using control = await bench();
  const agent = await control.agent("n1");
  await agent.expect("registered");
  agent.send(registration("n1"));
  await agent.expect("registered");
  agent.send(registration("n2"));
  await rejects(
    agent.next(),
    refused(Code.PermissionDenied, /node "n2" on the stream of node "n1"/),
  );
  agent.end();
  await control.seen("stream_closed");
  deepEqual(control.kinds(), ["registered", "registered", "stream_closed"]);
});

Deno.test("AgentService notices a cut stream and ends its log readers", async () => {
  await using control = await bench();
  const agent = await control.agent("n1");
  await agent.expect("registered");
  const source = { node: "n1", source: "agent", tailLines: 1, follow: true };
  const reader = control.logs.read(source, new AbortController().signal);
  const line = reader.next();
  const { requestId } = await agent.expect("readLog");
  agent.send({ case: "logChunk", value: { requestId, lines: ["hello"] } });
  deepEqual((await line).value, ["hello"]);
  const next = reader.next();
  agent.abort();
  await rejects(next, /its connection was lost/);
  await control.seen("stream_closed");
});

Deno.test("AgentService ends the stream of an agent that does not read", async () => {
  await using control = await bench();
  const agent = await control.agent("n1");
  await agent.expect("registered");
  // Large enough to fill what the network itself holds before the queue counts.
  const source = "x".repeat(64 * 1_024);
  const flood = () => {
    for (let count = 0; count <= 2 * NODE_QUEUE_MAX; count++) {
      control.streams.send("n1", {
        case: "readLog",
        value: { requestId: "r", source, tailLines: 1, follow: false },
      });
    }
  };
  let error: unknown;
  try {
    flood();
  } catch (thrown) {
    error = thrown;
  }
  equal(error instanceof HeddleError && error.code, "exhausted");
  await control.seen("stream_closed");
  agent.abort();
});
