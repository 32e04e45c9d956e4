/** One chat with a model, streamed. */
import { post } from "./call.ts";

export interface Message {
  readonly role: "user" | "assistant";
  readonly content: string;
}

/** What is known once an answer is whole. */
export interface ChatEnd {
  /** From asking to the first piece; undefined when there was none. */
  readonly firstMs: number | undefined;
  readonly wholeMs: number;
  /** As the engine counted; undefined when it did not say. */
  readonly tokens: number | undefined;
}

/** Sends the conversation and hands over the answer piece by piece. Throws with words when it fails. */
export async function chat(
  { model, messages, key }: {
    readonly model: string;
    readonly messages: readonly Message[];
    /** The client's key; empty for none. */
    readonly key: string;
  },
  onPiece: (text: string) => void,
  signal: AbortSignal,
): Promise<ChatEnd> {
  const begun = performance.now();
  let firstMs: number | undefined;
  let tokens: number | undefined;
  const answer = await post("/console/chat", {
    model,
    messages,
    stream: true,
    stream_options: { include_usage: true },
  }, { headers: key === "" ? {} : { "x-heddle-key": key }, signal });
  for await (const data of eventData(answer.body)) {
    if (data === "[DONE]") break;
    const chunk: Chunk = JSON.parse(data);
    if (chunk.error !== undefined) throw new Error(chunk.error.message ?? "the answer broke off");
    tokens = chunk.usage?.completion_tokens ?? tokens;
    const { content, reasoning_content } = chunk.choices?.[0]?.delta ?? {};
    const text = `${reasoning_content ?? ""}${content ?? ""}`;
    if (text === "") continue;
    firstMs ??= performance.now() - begun;
    onPiece(text);
  }
  return { firstMs, wholeMs: performance.now() - begun, tokens };
}

/** What is read of a chunk. */
interface Chunk {
  readonly choices?: readonly {
    readonly delta?: {
      readonly content?: string | null;
      readonly reasoning_content?: string | null;
    };
  }[];
  readonly usage?: { readonly completion_tokens?: number } | null;
  readonly error?: { readonly message?: string };
}

async function* eventData(body: ReadableStream<Uint8Array<ArrayBuffer>> | null) {
  if (body === null) return;
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const lines = (rest + value).split("\n");
    rest = lines.pop() ?? "";
    for (const line of lines) {
      if (line.startsWith("data:")) yield line.slice("data:".length).trim();
    }
  }
}
