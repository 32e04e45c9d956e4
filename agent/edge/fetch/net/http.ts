/**
 * Requests of the program that fetches. Redirects are followed by hand, because a hub answers a
 * request for a file with the address of another server, which must not see the token.
 */
import { VERSION } from "@heddle/common/version";
import { networkWords } from "@heddle/proto/error";
import { WeightsError } from "../../../core/weights/failure.ts";

const REDIRECTS_MAX = 10;
const REDIRECT_STATUS: ReadonlySet<number> = new Set([301, 302, 303, 307, 308]);
/** Asked to wait for longer than that, we ask again all the same. */
const RETRY_AFTER_MS_MAX = 300_000;
/** What a server says of an error. */
const WORDS_MAX = 300;

/** It may work the next time. */
export class Retriable extends Error {
  /** How long the server wants to be left alone. */
  readonly waitMs: number | undefined;
  /** What the hub redirected to is not there any more: ask the hub again. */
  readonly stale: boolean;
  /** The server said that it is asked too often. */
  readonly limited: boolean;
  /** It brought something, but so little that this is no progress. */
  readonly stalled: boolean;

  constructor(
    message: string,
    how: {
      readonly waitMs?: number;
      readonly stale?: boolean;
      readonly limited?: boolean;
      readonly stalled?: boolean;
    } = {},
  ) {
    super(message);
    this.name = "Retriable";
    this.waitMs = how.waitMs;
    this.stale = how.stale ?? false;
    this.limited = how.limited ?? false;
    this.stalled = how.stalled ?? false;
  }
}

export interface HttpOptions {
  /** Sent to `tokenOrigin`, and to nobody else. */
  readonly token: string | undefined;
  readonly tokenOrigin: string;
  /** PEM texts of authorities besides the usual. */
  readonly caCerts: readonly string[];
  /** An answer's head must come within this. */
  readonly headMs: number;
}

export interface Asked {
  readonly method?: "GET" | "HEAD";
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal: AbortSignal;
  /** The hub redirected to it earlier; by now it may have expired. */
  readonly redirected?: boolean;
}

export interface Answer {
  readonly response: Response;
  /** Where it came from in the end. */
  readonly url: string;
}

export class Http implements Disposable {
  readonly #options: HttpOptions;
  readonly #client: Deno.HttpClient;

  constructor(options: HttpOptions) {
    this.#options = options;
    this.#client = Deno.createHttpClient({
      caCerts: [...options.caCerts],
      // One connection for all requests would bring the bytes of one.
      http1: true,
      http2: false,
      poolMaxIdlePerHost: 64,
    });
  }

  /**
   * The answer with a 2xx status, its body unread. Throws Retriable, WeightsError, or the signal's
   * reason. Proxies are taken from the environment.
   */
  async ask(url: string, asked: Asked): Promise<Answer> {
    let at = url;
    for (let hop = 0; hop <= REDIRECTS_MAX; hop++) {
      const response = await this.#once(at, asked);
      if (!REDIRECT_STATUS.has(response.status)) {
        if (response.ok) return { response: await asItIs(response, at), url: at };
        throw await refusal(
          response,
          url,
          asked.redirected === true || at !== url ? at : undefined,
        );
      }
      await response.body?.cancel();
      at = redirected(at, response.headers.get("location"));
    }
    throw new WeightsError(
      "unreachable",
      `${shown(url)} redirects more than ${REDIRECTS_MAX} times`,
    );
  }

  [Symbol.dispose](): void {
    this.#client.close();
  }

  async #once(url: string, { method = "GET", headers = {}, signal }: Asked): Promise<Response> {
    const { token, tokenOrigin, headMs } = this.#options;
    const late = new AbortController();
    const timer = setTimeout(() => late.abort(), headMs);
    const all: Record<string, string> = {
      "user-agent": `heddle/${VERSION}`,
      // Bytes are counted and hashed as they lie on the server.
      "accept-encoding": "identity",
      ...headers,
    };
    if (token !== undefined && new URL(url).origin === tokenOrigin) {
      all["authorization"] = `Bearer ${token}`;
    }
    try {
      return await fetch(url, {
        method,
        headers: all,
        redirect: "manual",
        client: this.#client,
        signal: AbortSignal.any([signal, late.signal]),
      });
    } catch (error) {
      signal.throwIfAborted();
      if (late.signal.aborted) {
        throw new Retriable(`${shown(url)} did not answer within ${Math.round(headMs / 1_000)} s`);
      }
      throw new Retriable(`Cannot reach ${shown(url)}: ${networkWords(error)}`);
    } finally {
      clearTimeout(timer);
    }
  }
}

/** Only a whole answer, or a range, of bytes that nothing on the way has changed the form of. */
async function asItIs(response: Response, url: string): Promise<Response> {
  const { status, headers } = response;
  const encoding = headers.get("content-encoding")?.trim() ?? "";
  // Some servers say of an archive that it is compressed, and mean the archive.
  const plain = /^(?:identity)?$/i.test(encoding) || /\.t?gz$/i.test(shown(url));
  if ((status === 200 || status === 206) && plain) return response;
  await response.body?.cancel();
  throw new WeightsError(
    "unreachable",
    plain
      ? `${shown(url)} answered ${status}, which brings nothing`
      : `${
        shown(url)
      } came compressed (${encoding}), and was asked for as it lies there: the server, ` +
        "or a proxy before it, must not compress",
  );
}

/** A URL for people: what is behind the ? may be a signature. */
export function shown(url: string): string {
  return url.replace(/[?#].*$/s, "");
}

function redirected(from: string, location: string | null): string {
  let to: URL;
  try {
    if (location === null || location === "") throw new TypeError("nowhere");
    to = new URL(location, from);
  } catch {
    throw new Retriable(`${shown(from)} redirects to nowhere`);
  }
  if (to.protocol !== "https:" && to.protocol !== "http:") {
    throw new WeightsError(
      "unreachable",
      `${shown(from)} redirects to ${to.protocol}, not to http`,
    );
  }
  // What came encrypted is not fetched in the open.
  if (new URL(from).protocol === "https:" && to.protocol === "http:") {
    throw new WeightsError("unreachable", `${shown(from)} redirects from https to http`);
  }
  return to.href;
}

async function refusal(
  response: Response,
  asked: string,
  redirected: string | undefined,
): Promise<Error> {
  const { status, headers } = response;
  const words = headers.get("x-error-message")?.slice(0, WORDS_MAX) ?? await firstWords(response);
  const said = words === "" ? "" : ` ("${words}")`;
  const what = `${shown(asked)} answered ${status}${said}`;
  // An address that was signed for a while: the hub gives a new one.
  if (redirected !== undefined && [400, 401, 403, 404, 410].includes(status)) {
    return new Retriable(`${shown(redirected)} answered ${status}`, { stale: true });
  }
  if (status === 429) return new Retriable(what, { limited: true, ...retryAfter(headers) });
  if (status === 408 || status === 425 || status >= 500) {
    return new Retriable(what, retryAfter(headers));
  }
  switch (status) {
    case 401:
      return new WeightsError(
        "unauthorized",
        `${what}: it is not there, or wants a token; set weights.token_file in agent.yaml`,
      );
    case 403:
      return new WeightsError(
        "forbidden",
        `${what}: accept its terms on its page, with the account whose token the nodes have`,
      );
    case 404:
    case 410:
      return new WeightsError("source_not_found", what);
    case 416:
      return new WeightsError("changed", `${what}: the file is shorter than it was`);
    default:
      return new WeightsError("unreachable", what);
  }
}

async function firstWords(response: Response): Promise<string> {
  const kind = response.headers.get("content-type") ?? "";
  if (!/json|text\/plain/.test(kind)) {
    await response.body?.cancel();
    return "";
  }
  try {
    const text = (await response.text()).trim();
    const [, error] = /^\{\s*"error"\s*:\s*"([^"]+)"/.exec(text) ?? [];
    return (error ?? text).slice(0, WORDS_MAX);
  } catch {
    return "";
  }
}

// In seconds, or the moment itself.
function retryAfter(headers: Headers): { waitMs?: number } {
  const text = headers.get("retry-after") ?? "";
  const waitMs = /^\d+$/.test(text) ? Number(text) * 1_000 : Date.parse(text) - Date.now();
  return waitMs > 0 ? { waitMs: Math.min(waitMs, RETRY_AFTER_MS_MAX) } : {};
}
