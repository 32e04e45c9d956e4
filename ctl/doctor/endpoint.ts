/** Does the endpoint that clients use give a token? */
import { z } from "zod";
import { networkWords } from "@heddle/proto/error";
import type { Endpoint } from "../endpoint.ts";
import { type Check, failed, ok } from "./check.ts";

const TIMEOUT_MS = 30_000;
const USER = [{ role: "user", content: "Say hello." }];

/** Ways to ask a model for the least it can do, the likeliest first. */
const LEAST: readonly (readonly [string, (model: string) => unknown])[] = [
  ["/v1/chat/completions", (model) => ({ model, messages: USER, max_tokens: 1 })],
  ["/v1/completions", (model) => ({ model, prompt: "Hello", max_tokens: 1 })],
  ["/v1/embeddings", (model) => ({ model, input: "Hello" })],
];

const errorSchema = z.object({
  error: z.object({ message: z.string(), code: z.string().nullish() }),
});
const listSchema = z.object({ data: z.array(z.object({ id: z.string() })) });

/**
 * Two checks: what is offered there, and one token of `model`, or where undefined of the first that
 * is offered. The second only where the first went well.
 */
export async function* checkEndpoint(
  { base, key }: Endpoint,
  model: string | undefined,
  signal: AbortSignal,
): AsyncGenerator<Check> {
  const headers = {
    "content-type": "application/json",
    ...(key === undefined ? {} : { authorization: `Bearer ${key}` }),
  };
  const ask = async (path: string, body?: unknown): Promise<Answer> => {
    const response = await fetch(`${base}${path}`, {
      headers,
      ...(body === undefined ? {} : { method: "POST", body: JSON.stringify(body) }),
      signal: AbortSignal.any([signal, AbortSignal.timeout(TIMEOUT_MS)]),
    });
    const text = await response.text();
    return { status: response.status, replica: response.headers.get("x-heddle-replica"), text };
  };
  const listed = await checkList(base, ask);
  yield listed.check;
  if (listed.models === undefined) return;
  const wanted = model ?? listed.models[0];
  if (wanted === undefined) yield failed("token", "no model is offered", "heddle models");
  else yield await checkToken(wanted, ask);
}

interface Answer {
  readonly status: number;
  readonly replica: string | null;
  readonly text: string;
}

type Ask = (path: string, body?: unknown) => Promise<Answer>;

async function checkList(
  base: string,
  ask: Ask,
): Promise<{ readonly check: Check; readonly models?: readonly string[] }> {
  try {
    const answer = await ask("/v1/models");
    if (answer.status === 200) {
      const models = listSchema.parse(JSON.parse(answer.text)).data.map(({ id }) => id);
      return { check: ok("endpoint", `${base} offers ${models.join(", ") || "nothing"}`), models };
    }
    const next = answer.status === 401
      ? "give a key: --key-file, or endpoint.key_file in ctl's configuration"
      : "is this the router's address? its log says more";
    return { check: failed("endpoint", `${base} answers ${wordsOf(answer)}`, next) };
  } catch (error) {
    return {
      check: failed("endpoint", `${base}: ${networkWords(error)}`, "is a router listening there?"),
    };
  }
}

async function checkToken(model: string, ask: Ask): Promise<Check> {
  const startedAt = performance.now();
  let last: Answer | undefined;
  try {
    for (const [path, body] of LEAST) {
      last = await ask(path, body(model));
      if (last.status === 200) {
        const ms = Math.round(performance.now() - startedAt);
        return ok(
          "token",
          `${model} answered in ${ms} ms${last.replica ? ` from ${last.replica}` : ""}`,
        );
      }
      if (!/route_unsupported/.test(last.text)) break;
    }
    const words = last === undefined ? "nothing" : wordsOf(last);
    return failed("token", `${model} answers ${words}`, `heddle explain ${model}`);
  } catch (error) {
    return failed(
      "token",
      `${model}: ${networkWords(error)}`,
      `heddle logs of its replica; heddle replicas`,
    );
  }
}

function wordsOf({ status, text }: Answer): string {
  try {
    const { error } = errorSchema.parse(JSON.parse(text));
    return `${status} ${error.code ?? ""}: ${error.message}`.replace(" :", ":");
  } catch {
    return `${status}, and not in the API's form`;
  }
}
