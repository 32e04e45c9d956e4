/** The far end of an agent's stream, driven by a test. */
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { createClient, type Transport } from "@connectrpc/connect";
import { AgentService, ConnectRequestSchema, type ConnectResponse } from "@heddle/proto/gen/agent";
import { BoundedQueue } from "./bounded_queue.ts";

export type Fact = NonNullable<MessageInitShape<typeof ConnectRequestSchema>["message"]>;
type Command = ConnectResponse["message"];
type Commands = {
  [C in NonNullable<Command["case"]>]: Extract<Command, { case: C }>["value"];
};

export class AgentStream {
  readonly #facts = new BoundedQueue<ReturnType<typeof fact>>(10_000);
  readonly #commands: AsyncIterator<ConnectResponse>;
  readonly #leave = new AbortController();

  constructor(transport: Transport) {
    const client = createClient(AgentService, transport);
    this.#commands = client.connect(generated(this.#facts), { signal: this.#leave.signal })
      [Symbol.asyncIterator]();
  }

  send(message: Fact): void {
    this.#facts.push(fact(message));
  }

  /** The next message from control; its `case` is undefined when control ended the stream. */
  async next(): Promise<Command> {
    const { value, done } = await this.#commands.next();
    return done === true ? { case: undefined } : value.message;
  }

  /** The next message, which must be of this kind. */
  async expect<C extends keyof Commands>(kind: C): Promise<Commands[C]> {
    const message = await this.next();
    if (isKind(message, kind)) return message.value;
    throw new Error(`expected ${kind}, got ${message.case}`);
  }

  /** Ends the stream from this side, without an error. */
  end(): void {
    this.#facts.end();
  }

  /** Cuts the stream. */
  abort(): void {
    this.#leave.abort();
    this.#facts.end();
  }
}

export function registration(node: string): Fact {
  return { case: "register", value: { node, address: "127.0.0.1", inventory: {} } };
}

function fact(message: Fact) {
  return create(ConnectRequestSchema, { message });
}

// Connect wants a generator: it ends a stream by throwing into it.
async function* generated<T>(items: AsyncIterable<T>): AsyncGenerator<T> {
  yield* items;
}

function isKind<C extends keyof Commands>(
  message: Command,
  kind: C,
): message is Command & { case: C; value: Commands[C] } {
  return message.case === kind;
}
