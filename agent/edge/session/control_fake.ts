/** A control for tests: it takes registrations, shows what agents say, and says what it is told to. */
import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { startRpcServer } from "@heddle/common/rpc_server";
import {
  AgentService,
  type ConnectRequest,
  type ConnectResponse,
  ConnectResponseSchema,
  type Heartbeat,
  type LogChunk,
  type Register,
  RegisteredSchema,
} from "@heddle/proto/gen/agent";
import type { CommandResult } from "@heddle/proto/gen/agent";
import type { ShardStatus } from "@heddle/proto/gen/types";
import { decodeShardState, type ShardState } from "@heddle/proto/shard_state";

type Answer = Exclude<ConnectResponse["message"], { case: undefined }>;

/** Longer than anything in a test may take; a test that waits in vain says for what. */
const WAIT_MS_MAX = 30_000;

/** Values that are waited for. */
class Waiting<T> {
  readonly #seen: T[] = [];
  #wake = Promise.withResolvers<void>();
  #ended = false;

  push(value: T): void {
    this.#seen.push(value);
    this.#wake.resolve();
    this.#wake = Promise.withResolvers();
  }

  end(): void {
    this.#ended = true;
    this.#wake.resolve();
  }

  /** The first value of which `pick` makes something; it is taken out, with those before it. */
  async take<U>(what: string, pick: (value: T) => U | undefined): Promise<U> {
    const { promise: late, reject } = Promise.withResolvers<never>();
    const timer = setTimeout(() => reject(new Error(`waited in vain for ${what}`)), WAIT_MS_MAX);
    try {
      while (true) {
        for (let value = this.#seen.shift(); value !== undefined; value = this.#seen.shift()) {
          const picked = pick(value);
          if (picked !== undefined) return picked;
        }
        if (this.#ended) throw new Error(`the session ended before ${what}`);
        await Promise.race([this.#wake.promise, late]);
      }
    } finally {
      clearTimeout(timer);
    }
  }
}

export class FakeSession {
  readonly said = new Waiting<ConnectRequest>();
  readonly #answers: ConnectResponse[] = [];
  #wake = Promise.withResolvers<void>();
  #ended = false;

  constructor(readonly register: Register) {}

  send(message: Answer): void {
    this.#answers.push(create(ConnectResponseSchema, { message }));
    this.#wake.resolve();
  }

  /** Ends the stream, as a control that restarts does. */
  end(): void {
    this.#ended = true;
    this.#wake.resolve();
  }

  async *answers(): AsyncGenerator<ConnectResponse> {
    while (true) {
      for (let next = this.#answers.shift(); next !== undefined; next = this.#answers.shift()) {
        yield next;
      }
      if (this.#ended) return;
      this.#wake = Promise.withResolvers();
      await this.#wake.promise;
    }
  }

  /** The next status of that state of any shard; what came before it is passed over. */
  status(state: ShardState): Promise<ShardStatus> {
    return this.said.take(
      `a shard to be ${state}`,
      ({ message }) =>
        message.case === "shardStatus" && decodeShardState(message.value.state) === state
          ? message.value
          : undefined,
    );
  }

  result(): Promise<CommandResult> {
    return this.said.take(
      "a command's result",
      ({ message }) => message.case === "commandResult" ? message.value : undefined,
    );
  }

  heartbeat(): Promise<Heartbeat> {
    return this.said.take(
      "a heartbeat",
      ({ message }) => message.case === "heartbeat" ? message.value : undefined,
    );
  }

  logChunk(): Promise<LogChunk> {
    return this.said.take(
      "lines of a log",
      ({ message }) => message.case === "logChunk" ? message.value : undefined,
    );
  }
}

export interface ControlFake {
  readonly url: string;
  /** Streams that were opened, refused ones too. */
  readonly attempts: number;
  /** The next session that registered. */
  session(): Promise<FakeSession>;
  close(): Promise<void>;
}

/** Starts a control on loopback; a `standby` refuses every stream, as one that does not lead does. */
export async function startControlFake(
  options: { standby?: boolean; heartbeatMs?: number; port?: number } = {},
): Promise<ControlFake> {
  const sessions = new Waiting<FakeSession>();
  const open = new Set<FakeSession>();
  let attempts = 0;
  const server = await startRpcServer({
    listen: { host: "127.0.0.1", port: options.port ?? 0 },
    tls: undefined,
    routes: (router) =>
      router.service(AgentService, {
        async *connect(requests) {
          attempts++;
          if (options.standby === true) throw new ConnectError("I stand by", Code.Unavailable);
          const said = requests[Symbol.asyncIterator]();
          const first = await said.next();
          if (first.done === true || first.value.message.case !== "register") {
            throw new ConnectError("the first message must be register", Code.FailedPrecondition);
          }
          const session = new FakeSession(first.value.message.value);
          open.add(session);
          session.send({
            case: "registered",
            value: create(RegisteredSchema, {
              term: 1n,
              heartbeatIntervalMs: options.heartbeatMs ?? 60_000,
              settled: true,
            }),
          });
          sessions.push(session);
          const reading = (async () => {
            try {
              for (let next = await said.next(); next.done !== true; next = await said.next()) {
                session.said.push(next.value);
              }
            } catch {
              // The agent left.
            } finally {
              session.said.end();
              session.end();
            }
          })();
          yield* session.answers();
          open.delete(session);
          void reading;
        },
      }),
  });
  return {
    url: `http://127.0.0.1:${server.address.port}`,
    get attempts() {
      return attempts;
    },
    session: () => sessions.take("a session", (each) => each),
    async close() {
      for (const session of open) session.end();
      await server.close(200);
    },
  };
}
