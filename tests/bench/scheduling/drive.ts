/** Sends what arrives, each at its time whether the earlier ones are answered or not, and measures. */
import type { Arrival } from "./shapes.ts";

/** How one request went. */
export interface Measured {
  readonly ok: boolean;
  readonly firstMs: number;
  /** Mean time between two tokens; 0 of a single one. */
  readonly tokenMs: number;
  readonly promptTokens: number;
  readonly cachedTokens: number;
}

const FAILED: Measured = {
  ok: false,
  firstMs: NaN,
  tokenMs: NaN,
  promptTokens: 0,
  cachedTokens: 0,
};
/** A request that takes longer is lost to whoever sent it. */
const REQUEST_MS_MAX = 30_000;

export async function drive(
  port: number,
  arrivals: readonly Arrival[],
  onHalf: () => void,
): Promise<readonly Measured[]> {
  const startedAt = performance.now();
  const running: Promise<Measured>[] = [];
  const half = Math.floor(arrivals.length / 2);
  for (const [index, arrival] of arrivals.entries()) {
    const waitMs = arrival.at - (performance.now() - startedAt);
    if (waitMs > 0) await new Promise((resolve) => setTimeout(resolve, waitMs));
    if (index === half) onHalf();
    running.push(send(port, arrival));
  }
  return await Promise.all(running);
}

async function send(port: number, { messages, answerTokens }: Arrival): Promise<Measured> {
  const sentAt = performance.now();
  try {
    const response = await fetch(`http://127.0.0.1:${port}/v1/chat/completions`, {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({
        model: "m",
        messages,
        stream: true,
        stream_options: { include_usage: true },
        max_tokens: answerTokens,
        ignore_eos: true,
      }),
      signal: AbortSignal.timeout(REQUEST_MS_MAX),
    });
    if (response.status !== 200 || response.body === null) {
      await response.body?.cancel();
      return FAILED;
    }
    return await read(response.body, sentAt);
  } catch {
    return FAILED;
  }
}

async function read(body: ReadableStream<Uint8Array>, sentAt: number): Promise<Measured> {
  const decoder = new TextDecoder();
  let text = "";
  let firstAt: number | undefined;
  let lastAt = sentAt;
  let tokens = 0;
  for await (const part of body) {
    const piece = decoder.decode(part, { stream: true });
    text += piece;
    const count = piece.match(/"content":"[^"]/g)?.length ?? 0;
    if (count === 0) continue;
    lastAt = performance.now();
    firstAt ??= lastAt;
    tokens += count;
  }
  if (firstAt === undefined || !text.includes("[DONE]")) return FAILED;
  const number = (pattern: RegExp) => Number(pattern.exec(text)?.[1] ?? 0);
  return {
    ok: true,
    firstMs: firstAt - sentAt,
    tokenMs: tokens > 1 ? (lastAt - firstAt) / (tokens - 1) : 0,
    promptTokens: number(/"prompt_tokens":\s*(\d+)/),
    cachedTokens: number(/"cached_tokens":\s*(\d+)/),
  };
}
