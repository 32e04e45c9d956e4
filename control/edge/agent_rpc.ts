/**
 * Agents' side of control. An agent dials out, registers, and then holds one stream: facts come up,
 * commands go down. Losing the stream marks nothing; silence does.
 */
import type { MessageInitShape } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { errorText, HeddleError } from "@heddle/proto/error";
import type { AgentService, ConnectRequest, Register } from "@heddle/proto/gen/agent";
import type { EngineWantedSchema } from "@heddle/proto/gen/engines";
import { decodeRevision } from "@heddle/proto/revision";
import { logger } from "@heddle/common/log";
import { spawnTask } from "@heddle/common/task";
import { VERSION } from "@heddle/common/version";
import type { AgentEvent } from "../core/event.ts";
import type { World } from "../core/world.ts";
import { demandAgent, type Realm } from "./caller.ts";
import type { LogRequests } from "./log_requests.ts";
import type { NodeRequests } from "./node_requests.ts";
import type { NodeStream, NodeStreams } from "./node_streams.ts";

const log = logger("control", "agents");

/** How long a new stream may take to register: an agent does so at once. */
const REGISTER_MS = 10_000;

export interface AgentRpcOptions {
  readonly realm: Realm;
  readonly streams: NodeStreams;
  readonly logs: LogRequests;
  readonly requests: NodeRequests;
  /** What every node is to have now; absent, or undefined: no word on engines. */
  readonly engines?: () => readonly MessageInitShape<typeof EngineWantedSchema>[] | undefined;
  /** The single writer. */
  readonly loop: { dispatch(event: AgentEvent): Promise<void>; world(): World };
  /** Longest wait for a stream's first message in ms. @default 10 s */
  readonly registerMs?: number;
}

type Incoming = AsyncIterator<ConnectRequest>;

/** The handlers of AgentService. */
export function agentRpc(options: AgentRpcOptions): ServiceImpl<typeof AgentService> {
  return {
    async *connect(requests, context) {
      const incoming = requests[Symbol.asyncIterator]();
      const register = await firstRegister(incoming, options.registerMs ?? REGISTER_MS);
      demandAgent(context, options.realm, register.node);
      const stream = openStream(options, register, context);
      try {
        await accept(options, stream, { case: "register", value: register });
        spawnTask("agent stream", () => read(options, stream, incoming));
        yield* stream.outgoing;
      } finally {
        options.streams.close(stream);
      }
    },
  };
}

async function firstRegister(incoming: Incoming, deadlineMs: number): Promise<Register> {
  let timer: ReturnType<typeof setTimeout> | undefined;
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(
      () =>
        reject(new HeddleError("timeout", "Cannot accept the stream: it did not register in time")),
      deadlineMs,
    );
  });
  try {
    const first = await Promise.race([incoming.next(), late]);
    const message = first.done === true ? undefined : first.value.message;
    if (message?.case === "register") return message.value;
    throw new HeddleError(
      "failed_precondition",
      `Cannot accept the stream: its first message must be Register, not ${
        message?.case ?? "nothing"
      }`,
    );
  } finally {
    clearTimeout(timer);
  }
}

function openStream(
  { streams, logs, requests }: AgentRpcOptions,
  { node, agentVersion }: Register,
  context: HandlerContext,
): NodeStream {
  const stream = streams.open(node);
  // What was asked over an older stream is not answered on this one.
  logs.nodeGone(node);
  requests.nodeGone(node);
  context.signal.addEventListener("abort", () => stream.outgoing.end());
  if (context.signal.aborted) stream.outgoing.end();
  log.info("Node connected", { node, version: agentVersion });
  return stream;
}

async function read(
  options: AgentRpcOptions,
  stream: NodeStream,
  incoming: Incoming,
): Promise<void> {
  const { node } = stream;
  try {
    for (let next = await incoming.next(); next.done !== true; next = await incoming.next()) {
      // A replaced stream may still deliver what its agent said before it opened the newer one.
      if (!options.streams.current(stream)) return;
      await accept(options, stream, next.value.message);
    }
    stream.outgoing.end();
  } catch (error) {
    log.debug("Node's stream broke", { node, reason: errorText(error) });
    stream.outgoing.fail(error);
  }
}

// Waits until it took effect: a stream's messages keep their order, and one that brings more than
// can be stored is read no faster.
async function accept(
  options: AgentRpcOptions,
  stream: NodeStream,
  message: ConnectRequest["message"],
): Promise<void> {
  const { loop, streams, logs } = options;
  const { node } = stream;
  switch (message.case) {
    case "register":
      await loop.dispatch(registered(node, message.value));
      // Storing it may have taken longer than the node cared to wait.
      if (!streams.current(stream)) return;
      streams.send(node, { case: "registered", value: answer(options, node) });
      return;
    case "heartbeat":
      return loop.dispatch({ kind: "heartbeat", node, heartbeat: message.value });
    case "shardStatus":
      return loop.dispatch({ kind: "shard_status", node, status: message.value });
    case "commandResult":
      return loop.dispatch({ kind: "command_result", node, result: message.value });
    case "logChunk":
      return logs.accept(node, message.value);
    case "nodeAnswer":
      return options.requests.accept(node, message.value);
    case undefined:
      log.debug("Ignored a message of a kind that a newer agent knows", { node });
      return;
    default:
      message satisfies never;
  }
}

function registered(node: string, register: Register): AgentEvent {
  const { inventory, address, agentVersion, bootId, agentInstance, shards } = register;
  if (register.node !== node) {
    throw new HeddleError(
      "permission_denied",
      `Cannot register node "${register.node}" on the stream of node "${node}"`,
    );
  }
  if (inventory === undefined || address === "") {
    const what = inventory === undefined ? "inventory" : "address";
    throw new HeddleError("invalid_input", `Cannot register node "${node}": it sent no ${what}`);
  }
  return {
    kind: "registered",
    node,
    agentVersion,
    bootId,
    agentInstance,
    address,
    inventory,
    shards,
    highestRevision: decodeRevision(register.highestRevision),
  };
}

/** Tells every connected node anew what it was told when it registered. */
export function tellAgain(options: AgentRpcOptions): void {
  for (const node of options.streams.nodes()) {
    options.streams.send(node, { case: "registered", value: answer(options, node) });
  }
}

function answer(options: AgentRpcOptions, node: string) {
  const { loop } = options;
  const engines = options.engines?.();
  const world = loop.world();
  const shardIds = [...world.replicas.values()]
    .flatMap(({ shards }) => shards.filter((shard) => shard.node === node).map(({ id }) => id));
  return {
    term: BigInt(world.term),
    heartbeatIntervalMs: world.timings.heartbeatMs,
    shardIds,
    settled: world.published.settled,
    controlVersion: VERSION,
    // Left out where the configuration says nothing, which differs from wanting none.
    ...(engines === undefined ? {} : { engines: { engines: [...engines] } }),
  };
}
