/**
 * The agent's one stream to control. The agent dials out, and for ever: nodes sit behind firewalls
 * more often than control does. Losing the stream changes nothing on the node; engines go on. Each
 * new stream begins with everything there is, so that one mechanism covers an agent's restart,
 * control's restart and a cut in the network.
 */
import { create } from "@bufbuild/protobuf";
import { createClient, type Transport } from "@connectrpc/connect";
import { type BackoffBounds, backoffMs } from "@heddle/common/backoff";
import { logger } from "@heddle/common/log";
import type { RpcConnection } from "@heddle/common/rpc_client";
import { delay, spawnTask } from "@heddle/common/task";
import { HeddleError } from "@heddle/proto/error";
import { fromRpc } from "@heddle/proto/error_code";
import {
  AgentService,
  type ConnectRequest,
  type ConnectResponse,
  type Heartbeat,
  LogChunkSchema,
  type ReadLog,
  type Register,
  type Registered,
  type StartShard,
  type StopShard,
} from "@heddle/proto/gen/agent";
import type { ShardStatus } from "@heddle/proto/gen/types";
import type { NodeAnswer, NodeRequest } from "@heddle/proto/gen/weights";
import { request } from "./encode.ts";
import { Outbox } from "./outbox.ts";

const log = logger("agent", "session");

/** Waits between rounds of tries; jittered, or a fleet would come back in step. */
export const RECONNECT: BackoffBounds = { firstMs: 1_000, maxMs: 30_000 };
/** Control answers a registration at once; one that does not is no control to stay with. */
const REGISTERED_MS_MAX = 15_000;
const HEARTBEAT_MS = 5_000;
/** What control may ask for; outside of it something is wrong with control, not with us. */
const HEARTBEAT_MS_MIN = 200;
const HEARTBEAT_MS_MAX = 60_000;
/** A stream that lived this long was a good one: the next failure counts as the first. */
const GOOD_STREAM_MS = 10_000;

type Command = Extract<
  ConnectRequest["message"],
  { case: "commandResult" } | { case: "shardStatus" }
>;

/** What the session asks of the rest of the agent. */
export interface SessionHooks {
  /** Everything about this node. Rejects only when `signal` aborts. */
  register(signal: AbortSignal): Promise<Register>;
  heartbeat(signal: AbortSignal): Promise<Heartbeat>;
  /** What to answer, in order. */
  startShard(command: StartShard): Promise<readonly Command[]>;
  stopShard(command: StopShard): Promise<readonly Command[]>;
  /** Never rejects. */
  nodeRequest(request: NodeRequest): Promise<NodeAnswer>;
  /** Sends lines until done or `signal` aborts. */
  readLog(command: ReadLog, send: SendLines, signal: AbortSignal): Promise<void>;
  onRegistered(registered: Registered): void;
  onLost(): void;
}

/** False: nobody reads them any more. Resolves when there is room for more. */
export type SendLines = (
  lines: { lines: string[]; end: boolean; error: string },
) => Promise<boolean>;

export interface SessionOptions {
  readonly node: string;
  /** URLs of control, the preferred one first. */
  readonly controls: readonly string[];
  readonly connect: (url: string) => Promise<RpcConnection>;
  readonly hooks: SessionHooks;
  /** Runs beside each session, over its connection, until `signal` aborts. Never rejects. */
  readonly beside?: (transport: Transport, signal: AbortSignal) => Promise<void>;
  readonly backoff: BackoffBounds;
}

interface Stream {
  readonly outbox: Outbox<ConnectRequest>;
  readonly logs: Map<string, AbortController>;
  readonly signal: AbortSignal;
  /** Aborted to have the next heartbeat at once; each heartbeat has its own. */
  nudge: AbortController;
}

/** How many logs are read at once for control. */
const LOGS_MAX = 32;
/** Lines wait while this many messages do, so that they never keep a status from going out. */
const LOG_BACKLOG_MAX = 64;
const LOG_BACKLOG_POLL_MS = 20;

export class Session {
  readonly #options: SessionOptions;
  #stream: Stream | undefined;

  constructor(options: SessionOptions) {
    this.#options = options;
  }

  /** Why there is no session; undefined when there is one. */
  get notConnected(): string | undefined {
    return this.#stream === undefined ? "not connected to control" : undefined;
  }

  /** Tells control at once; without a session the next registration does. */
  tell(status: ShardStatus): void {
    this.#stream?.outbox.push(request({ case: "shardStatus", value: status }));
  }

  /** Sends the next heartbeat now. */
  nudge(): void {
    this.#stream?.nudge.abort();
  }

  /** Keeps a session until `signal` aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { node, controls, backoff } = this.#options;
    let failures = 0;
    while (!signal.aborted) {
      for (const url of controls) {
        if (signal.aborted) return;
        const begunAt = performance.now();
        const registered = await this.#attempt(url, signal);
        if (signal.aborted) return;
        // Back to the preferred one: it may be the one that leads again.
        if (registered) {
          if (performance.now() - begunAt >= GOOD_STREAM_MS) failures = 0;
          break;
        }
      }
      failures++;
      await delay(backoffMs(node, failures, backoff), signal);
    }
  }

  // True when the session stood: then its end says nothing against this control.
  async #attempt(url: string, signal: AbortSignal): Promise<boolean> {
    let registered = false;
    let connection: RpcConnection | undefined;
    try {
      connection = await this.#options.connect(url);
      await this.#hold(connection, url, signal, () => registered = true);
      if (!signal.aborted) log.warning("Control ended the session", { url });
    } catch (error) {
      if (!signal.aborted) {
        const why = fromRpc(error, registered ? "Lost control" : "Cannot reach control");
        log.warning(why.message, { url });
      }
    } finally {
      connection?.close();
      if (registered) this.#options.hooks.onLost();
    }
    return registered;
  }

  async #hold(
    connection: RpcConnection,
    url: string,
    signal: AbortSignal,
    onRegistered: () => void,
  ): Promise<void> {
    const { hooks } = this.#options;
    const over = new AbortController();
    const ended = AbortSignal.any([signal, over.signal]);
    const outbox = new Outbox<ConnectRequest>();
    const stream: Stream = { outbox, logs: new Map(), signal: ended, nudge: new AbortController() };
    let tooLate: ReturnType<typeof setTimeout> | undefined;
    try {
      const register = await hooks.register(signal);
      tooLate = setTimeout(() => over.abort(), REGISTERED_MS_MAX);
      outbox.push(request({ case: "register", value: register }));
      // From here on a change is told after the registration, and none falls between.
      this.#stream = stream;
      const responses = createClient(AgentService, connection.transport)
        .connect(outbox.drain(), { signal: ended });
      let first = true;
      for await (const { message } of responses) {
        if (first && message.case !== "registered") {
          throw new HeddleError("protocol", `Control answered ${message.case} to a registration`);
        }
        if (message.case === "registered") {
          clearTimeout(tooLate);
          hooks.onRegistered(message.value);
          if (first) {
            onRegistered();
            log.info("Registered with control", { url, term: Number(message.value.term) });
            this.#beat(stream, message.value, over);
            const { beside } = this.#options;
            if (beside !== undefined) {
              spawnTask("beside session", () => beside(connection.transport, ended), ended);
            }
          }
          first = false;
        } else {
          await this.#obey(stream, message);
        }
        if (outbox.overflowed) throw new HeddleError("exhausted", "control does not read");
      }
    } catch (error) {
      if (over.signal.aborted && !signal.aborted) {
        throw new HeddleError(
          "timeout",
          outbox.overflowed ? "control does not read" : "no answer to the registration",
          { cause: error },
        );
      }
      throw error;
    } finally {
      clearTimeout(tooLate);
      if (this.#stream === stream) this.#stream = undefined;
      over.abort();
      outbox.close();
    }
  }

  async #obey(stream: Stream, message: ConnectResponse["message"]): Promise<void> {
    const { hooks } = this.#options;
    switch (message.case) {
      case "startShard":
        for (const answer of await hooks.startShard(message.value)) {
          stream.outbox.push(request(answer));
        }
        return;
      case "stopShard":
        for (const answer of await hooks.stopShard(message.value)) {
          stream.outbox.push(request(answer));
        }
        return;
      case "nodeRequest":
        this.#answer(stream, message.value);
        return;
      case "readLog":
        this.#readLog(stream, message.value);
        return;
      case "cancelLog":
        stream.logs.get(message.value.requestId)?.abort();
        return;
      default:
        // A newer control may say things that this agent does not know.
        return;
    }
  }

  #beat(stream: Stream, registered: Registered, over: AbortController): void {
    const asked = registered.heartbeatIntervalMs || HEARTBEAT_MS;
    const intervalMs = Math.min(Math.max(asked, HEARTBEAT_MS_MIN), HEARTBEAT_MS_MAX);
    spawnTask("heartbeat", async () => {
      while (!stream.signal.aborted) {
        await delay(intervalMs, AbortSignal.any([stream.signal, stream.nudge.signal]));
        if (stream.signal.aborted) return;
        stream.nudge = new AbortController();
        const heartbeat = await this.#options.hooks.heartbeat(stream.signal);
        stream.outbox.push(request({ case: "heartbeat", value: heartbeat }));
        if (stream.outbox.overflowed) over.abort();
      }
    }, stream.signal);
  }

  // Beside the commands, which must not wait for it.
  #answer(stream: Stream, asked: NodeRequest): void {
    spawnTask("node request", async () => {
      const value = await this.#options.hooks.nodeRequest(asked);
      stream.outbox.push(request({ case: "nodeAnswer", value }));
    }, stream.signal);
  }

  #readLog(stream: Stream, command: ReadLog): void {
    const { requestId } = command;
    const cancel = new AbortController();
    const signal = AbortSignal.any([stream.signal, cancel.signal]);
    const send: SendLines = async (chunk) => {
      while (stream.outbox.length > LOG_BACKLOG_MAX && !signal.aborted) {
        await delay(LOG_BACKLOG_POLL_MS, signal);
      }
      if (signal.aborted) return false;
      const { lines, end, error } = chunk;
      return stream.outbox.push(request({
        case: "logChunk",
        value: create(LogChunkSchema, { requestId, lines, end, error }),
      }));
    };
    if (stream.logs.size >= LOGS_MAX || stream.logs.has(requestId)) {
      const error = `This node already reads ${stream.logs.size} logs; try again later`;
      spawnTask("refused log", async () => void await send({ lines: [], end: true, error }));
      return;
    }
    stream.logs.set(requestId, cancel);
    spawnTask("log", async () => {
      try {
        await this.#options.hooks.readLog(command, send, signal);
      } finally {
        stream.logs.delete(requestId);
      }
    }, signal);
  }
}
