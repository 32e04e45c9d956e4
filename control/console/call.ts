/** What the page asks of control. Every answer that is none is an Error with a sentence for people. */
import type { Preview, TrafficHistory, Visit } from "../edge/console/wire.ts";

/** Nobody is logged in, or the session has ended. */
export class LoggedOut extends Error {}

/** Control did not answer at all. */
export class Away extends Error {}

/** A call of the admin API by its name, in JSON. */
export async function rpc<T>(
  method: string,
  request: Readonly<Record<string, unknown>>,
  service = "AdminService",
): Promise<T> {
  const answer = await post(`/console/rpc/heddle.v1.${service}/${method}`, request);
  return await answer.json();
}

/** Who looks. Throws `LoggedOut` for nobody. */
export async function whoLooks(): Promise<Visit> {
  return await (await ask("/console/session")).json();
}

export async function logIn(token: string): Promise<void> {
  await post("/console/login", { token });
}

export async function logOut(): Promise<void> {
  await post("/console/logout", {});
}

/** What a decision would come to. */
export async function foresee(asked: Readonly<Record<string, unknown>>): Promise<Preview> {
  return await (await post("/console/preview", asked)).json();
}

export async function trafficOf(model: string): Promise<TrafficHistory> {
  return await (await ask(`/console/traffic?model=${encodeURIComponent(model)}`)).json();
}

/** Sends JSON. `signal` ends it, and the answer's body with it. */
export async function post(
  path: string,
  body: unknown,
  { headers = {}, signal }: {
    readonly headers?: Readonly<Record<string, string>>;
    readonly signal?: AbortSignal;
  } = {},
): Promise<Response> {
  return await ask(path, {
    method: "POST",
    headers: { "content-type": "application/json", ...headers },
    body: body instanceof Uint8Array ? body.slice() : JSON.stringify(body),
    ...(signal === undefined ? {} : { signal }),
  });
}

async function ask(path: string, init: RequestInit = {}): Promise<Response> {
  let answer: Response;
  try {
    answer = await fetch(path, init);
  } catch (error) {
    if (init.signal?.aborted) throw error;
    throw new Away("Control does not answer");
  }
  if (answer.ok) return answer;
  const message = await messageOf(answer);
  throw answer.status === 401 ? new LoggedOut(message) : new Error(message);
}

async function messageOf(answer: Response): Promise<string> {
  const text = await answer.text();
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === "object" && value !== null) {
      if ("message" in value && typeof value.message === "string") return value.message;
      // What a router says of a request is in the form of OpenAI's errors.
      const inner: unknown = "error" in value ? value.error : undefined;
      if (typeof inner === "object" && inner !== null && "message" in inner) {
        return String(inner.message);
      }
    }
  } catch {
    // What is no JSON is shown as it is.
  }
  return text === "" ? `the answer was ${answer.status}` : text.slice(0, 500);
}

export function wordsOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
