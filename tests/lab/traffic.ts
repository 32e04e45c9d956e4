/** Clients that stream one answer after the other, and remember every one that went wrong. */
import type { Fleet } from "./fleet.ts";

const ANSWER_MS_MAX = 60_000;

export class Traffic {
  readonly failures: string[] = [];
  served = 0;
  readonly #url: string;
  readonly #model: string;
  readonly #key: string;
  readonly #clients: Promise<void>[] = [];
  #stopped = false;

  private constructor(given: { url: string; model: string; key: string }) {
    this.#url = given.url;
    this.#model = given.model;
    this.#key = given.key;
  }

  /** Starts `clients` of them. */
  static async start(fleet: Fleet, model: string, clients: number): Promise<Traffic> {
    const url = `http://${fleet.node("router-1").address}:8080/v1/chat/completions`;
    const traffic = new Traffic({ url, model, key: await fleet.key() });
    for (let index = 0; index < clients; index++) traffic.#clients.push(traffic.#client());
    return traffic;
  }

  /** Lets every client finish what it has begun. */
  async stop(): Promise<void> {
    this.#stopped = true;
    await Promise.all(this.#clients);
  }

  async #client(): Promise<void> {
    while (!this.#stopped) {
      try {
        const failure = await this.#stream();
        if (failure === undefined) this.served += 1;
        else this.failures.push(`${new Date().toISOString()} ${failure}`);
      } catch (error) {
        this.failures.push(`${new Date().toISOString()} ${withCauses(error)}`);
      }
    }
  }

  async #stream(): Promise<string | undefined> {
    const response = await fetch(this.#url, {
      method: "POST",
      headers: { authorization: `Bearer ${this.#key}`, "content-type": "application/json" },
      body: JSON.stringify({
        model: this.#model,
        stream: true,
        max_tokens: 40,
        messages: [{ role: "user", content: "tell me something" }],
      }),
      signal: AbortSignal.timeout(ANSWER_MS_MAX),
    });
    const text = await response.text();
    if (!response.ok) return `${response.status}: ${text.slice(0, 200)}`;
    if (!text.includes("data: [DONE]")) return `cut off: ${text.slice(-200)}`;
    return undefined;
  }
}

/** What went wrong, and why: `fetch` says only in the cause what became of the connection. */
function withCauses(error: unknown): string {
  const words: string[] = [];
  for (let each = error; each !== undefined && words.length < 5;) {
    words.push(String(each));
    each = each instanceof Error ? each.cause : undefined;
  }
  return words.join(": ");
}
