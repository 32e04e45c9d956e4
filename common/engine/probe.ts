/**
 * Asks an engine whether it serves. Health alone says nothing: engines answer 200 while they load and
 * while they hang, and list models that they cannot run. So three questions, and the last one is a
 * real token. Refused connections are how every engine looks while it loads.
 */
import { z } from "zod";
import type { Address } from "../address.ts";
import { askEngine, type EngineAnswer } from "./http.ts";
import type { ProbeOutcome } from "./probe_outcome.ts";

const HEALTH_MS_MAX = 5_000;
/** Words of an engine that go into a status. */
const WORDS_MAX = 300;

export interface ProbeRequest {
  readonly address: Address;
  /** The name under which the engine must list its model. */
  readonly model: string;
  readonly apiKey: string;
  /** False leaves out the token, for an engine that is busy with real ones. */
  readonly token: boolean;
  /** How long it may take for it, in ms. */
  readonly tokenMsMax: number;
  /** Ends the probe early; its outcome then means nothing. */
  readonly signal: AbortSignal;
}

/** Never rejects; takes at most a few minutes, most of them for the token. */
export async function probeEngine(request: ProbeRequest): Promise<ProbeOutcome> {
  const health = await askEngine({ ...request, path: "/health", deadlineMs: HEALTH_MS_MAX });
  const sick = healthProblem(health);
  if (sick !== undefined) return sick;
  const listed = await askEngine({ ...request, path: "/v1/models", deadlineMs: HEALTH_MS_MAX });
  const found = findModel(listed, request.model);
  if (found.kind !== "ready" || !request.token) return found;
  const lacking = await lackingToken(request);
  return lacking ?? found;
}

function healthProblem(answer: EngineAnswer): ProbeOutcome | undefined {
  switch (answer.kind) {
    case "refused":
      return { kind: "waiting", why: "nothing listens on its port yet" };
    case "failed":
      return { kind: "waiting", why: `/health: ${answer.why}` };
    case "answer":
      if (answer.status === 200) return undefined;
      if (answer.status === 401) return wrongKey("/health");
      return { kind: "waiting", why: `/health answers ${said(answer)}` };
    default:
      return answer satisfies never;
  }
}

const modelsSchema = z.object({
  data: z.array(z.object({ id: z.string(), max_model_len: z.number().nullish() })),
});

function findModel(answer: EngineAnswer, model: string): ProbeOutcome {
  if (answer.kind !== "answer") {
    return {
      kind: "waiting",
      why: `/v1/models: ${answer.kind === "failed" ? answer.why : "refused"}`,
    };
  }
  if (answer.status === 401 || answer.status === 403) return wrongKey("/v1/models");
  const parsed = modelsSchema.safeParse(jsonOf(answer.text));
  if (answer.status !== 200 || !parsed.success) {
    return { kind: "waiting", why: `/v1/models answers ${said(answer)}` };
  }
  const card = parsed.data.data.find(({ id }) => id === model);
  if (card === undefined) {
    const names = parsed.data.data.map(({ id }) => `"${id}"`).join(", ") || "none";
    return {
      kind: "wrong",
      reason: "model_not_listed",
      why: `it does not list model "${model}" but ${names}`.slice(0, WORDS_MAX),
    };
  }
  const maxModelLen = card.max_model_len;
  return typeof maxModelLen === "number" && maxModelLen > 0
    ? { kind: "ready", maxModelLen }
    : { kind: "ready" };
}

/** Ways to get something out of a model, for those that complete, those that chat, those that embed. */
const WAYS: readonly {
  readonly path: string;
  readonly body: (model: string) => unknown;
  readonly proof: z.ZodType;
}[] = [
  {
    path: "/v1/completions",
    body: (model) => ({ model, prompt: "a", max_tokens: 1, temperature: 0 }),
    proof: z.object({ choices: z.array(z.object({ text: z.string() })).min(1) }),
  },
  {
    path: "/v1/chat/completions",
    body: (model) => ({ model, messages: [{ role: "user", content: "a" }], max_tokens: 1 }),
    proof: z.object({ choices: z.array(z.object({ message: z.looseObject({}) })).min(1) }),
  },
  {
    path: "/v1/embeddings",
    body: (model) => ({ model, input: "a" }),
    proof: z.object({ data: z.array(z.object({ embedding: z.array(z.number()).min(1) })).min(1) }),
  },
];

/** Statuses by which an engine says that this model does not do that. */
const NOT_THIS_WAY: readonly number[] = [400, 404, 405, 422, 501];

async function lackingToken(request: ProbeRequest): Promise<ProbeOutcome | undefined> {
  let last: ProbeOutcome = { kind: "waiting", why: "it gives no token" };
  for (const { path, body, proof } of WAYS) {
    const answer = await askEngine({
      ...request,
      path,
      body: body(request.model),
      deadlineMs: request.tokenMsMax,
    });
    if (answer.kind !== "answer") {
      const why = answer.kind === "refused" ? "connection refused" : answer.why;
      return { kind: "wrong", reason: "no_token", why: `${path}: ${why}` };
    }
    if (answer.status === 401 || answer.status === 403) return wrongKey(path);
    if (answer.status === 200 && proof.safeParse(jsonOf(answer.text)).success) return undefined;
    const why = `${path} gives no token: ${said(answer)}`;
    last = { kind: "wrong", reason: "no_token", why };
    if (!NOT_THIS_WAY.includes(answer.status)) return last;
  }
  return last;
}

function wrongKey(path: string): ProbeOutcome {
  return {
    kind: "wrong",
    reason: "wrong_key",
    why: `${path} refuses the replica's key: another program listens on its port, or its profile ` +
      "sets a key of its own",
  };
}

function said(answer: Extract<EngineAnswer, { kind: "answer" }>): string {
  const text = answer.text.replaceAll(/\s+/g, " ").trim().slice(0, WORDS_MAX);
  return text === "" ? String(answer.status) : `${answer.status} ${text}`;
}

function jsonOf(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}
