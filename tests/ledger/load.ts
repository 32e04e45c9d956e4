/** Requests that end in every way, and what their sender saw of each. */
import { MODEL } from "./site.ts";

export interface Sent {
  readonly id: string;
  readonly startedAt: number;
  readonly endedAt: number;
  /** It has its whole answer. */
  readonly whole: boolean;
}

export interface LoadOptions {
  readonly url: string;
  readonly secret: string;
  readonly clients: number;
  readonly requests: number;
  /** In [0,1). */
  readonly random: () => number;
  /** Resolves once the router is there, as far as it is known not to be. */
  readonly ready: () => Promise<void>;
}

const WORDS = "weft warp shed reed beam sley pick heald shuttle thread loom cloth".split(" ");
/** How often a client leaves before its answer is whole. */
const LEAVES = 0.2;

/** Sends them all, a few at a time, and tells what came of each. */
export async function sendAll(
  options: LoadOptions,
  onEnd: (count: number) => void,
): Promise<Sent[]> {
  const sent: Sent[] = [];
  let next = 0;
  await Promise.all(Array.from({ length: options.clients }, async () => {
    while (next < options.requests) {
      await options.ready();
      const number = next++;
      sent.push(await sendOne(options, number));
      onEnd(sent.length);
    }
  }));
  return sent;
}

async function sendOne(options: LoadOptions, number: number): Promise<Sent> {
  const { url, secret, random } = options;
  const id = `ledger-${number}`;
  const startedAt = performance.now();
  const leaves = random() < LEAVES;
  const stream = random() < 0.6;
  const leaving = new AbortController();
  let whole = false;
  try {
    const response = await fetch(`${url}/v1/chat/completions`, {
      method: "POST",
      headers: {
        authorization: `Bearer ${secret}`,
        "content-type": "application/json",
        "x-request-id": id,
      },
      signal: leaving.signal,
      body: JSON.stringify({
        model: MODEL,
        stream,
        max_tokens: 4 + Math.floor(random() * 20),
        messages: [{ role: "user", content: wordsOf(random) }],
      }),
    });
    if (response.status === 200 && stream && leaves) await readSome(response, 1 + random() * 3);
    else {
      await response.text();
      whole = response.status === 200;
    }
  } catch {
    // The router was killed, or the engine broke off: whatever it was, the books must show it.
  } finally {
    leaving.abort();
  }
  return { id, startedAt, endedAt: performance.now(), whole };
}

async function readSome(response: Response, events: number): Promise<void> {
  const reader = response.body?.getReader();
  for (let count = 0; count < events; count++) {
    const { done } = await reader?.read() ?? { done: true };
    if (done) return;
  }
  await reader?.cancel();
}

/** Between ten and sixty words, so that prompts differ. */
function wordsOf(random: () => number): string {
  const count = 10 + Math.floor(random() * 50);
  return Array.from({ length: count }, () => WORDS[Math.floor(random() * WORDS.length)]).join(" ");
}
