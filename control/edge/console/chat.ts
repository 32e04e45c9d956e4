/**
 * The playground's requests, handed on to a router. The page may speak to control alone, so control
 * carries these few; whatever a client of the fleet sends goes to a router directly.
 */
import { HeddleError, networkWords } from "@heddle/proto/error";

/** At a time, for all consoles: it is for trying a model, not for using it. */
const CHATS_MAX = 8;

/** Longest one, in ms. */
const CHAT_MS_MAX = 600_000;

export class Playground {
  /** Base of an OpenAI endpoint, e.g. "https://models.example.com/v1"; undefined when none is known. */
  readonly endpoint: string | undefined;
  readonly #client: Deno.HttpClient | undefined;
  #open = 0;

  /** `ca` is trusted for the endpoint beside the system's authorities. */
  constructor(endpoint: string | undefined, ca: string | undefined) {
    this.endpoint = endpoint?.replace(/\/+$/, "");
    this.#client = ca === undefined ? undefined : Deno.createHttpClient({ caCerts: [ca] });
  }

  /**
   * Sends a chat request and hands over the answer as it comes: first its status and type, then its
   * bytes. Throws `failed_precondition` without an endpoint, `exhausted` when too many are open, and
   * `unavailable` when the router cannot be reached.
   */
  async send(
    body: string,
    authorization: string | undefined,
    { begin, chunk, signal }: {
      readonly begin: (status: number, type: string) => void;
      /** Resolves when there is room for more. */
      readonly chunk: (bytes: Uint8Array) => Promise<void>;
      readonly signal: AbortSignal;
    },
  ): Promise<void> {
    if (this.endpoint === undefined) {
      throw new HeddleError(
        "failed_precondition",
        "Cannot chat: control knows no endpoint. Set console.endpoint in control.yaml",
      );
    }
    if (this.#open >= CHATS_MAX) {
      throw new HeddleError("exhausted", `Cannot chat: ${CHATS_MAX} playgrounds are at it already`);
    }
    this.#open++;
    try {
      const limit = AbortSignal.any([signal, AbortSignal.timeout(CHAT_MS_MAX)]);
      const answer = await this.#fetch(this.endpoint, { body, authorization, signal: limit });
      begin(answer.status, answer.headers.get("content-type") ?? "application/json");
      for await (const bytes of answer.body ?? []) await chunk(bytes);
    } finally {
      this.#open--;
    }
  }

  close(): void {
    this.#client?.close();
  }

  async #fetch(
    endpoint: string,
    { body, authorization, signal }: {
      readonly body: string;
      readonly authorization: string | undefined;
      readonly signal: AbortSignal;
    },
  ): Promise<Response> {
    try {
      return await fetch(`${endpoint}/chat/completions`, {
        method: "POST",
        headers: {
          "content-type": "application/json",
          ...(authorization === undefined ? {} : { authorization }),
        },
        body,
        signal,
        redirect: "manual",
        ...(this.#client === undefined ? {} : { client: this.#client }),
      });
    } catch (error) {
      throw new HeddleError(
        "unavailable",
        `Cannot reach the router at ${endpoint} (console.endpoint): ${networkWords(error)}`,
        { cause: error },
      );
    }
  }
}
