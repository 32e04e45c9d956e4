/** `ctl models pause`, `resume` and `retry`: an operator's decisions about a model. */
import { buildCommand } from "@stricli/core";
import type { ModelView } from "@heddle/proto/gen/admin";
import { CALL_TIMEOUT_MS } from "../../client.ts";
import {
  call,
  COMMON_FLAGS,
  type CommonFlags,
  type CtlContext,
  REASON_FLAG,
  type ReasonFlags,
} from "../../command.ts";

/** The one positional parameter of these commands. */
const MODEL_PARAMETER = {
  kind: "tuple",
  parameters: [{ parse: String, brief: "Name or alias of the model", placeholder: "model" }],
} as const;

export const pause = buildCommand({
  docs: {
    brief: "Start, replace and scale nothing of a model until it is resumed",
    fullDescription: "What runs goes on serving; what fails is cleaned up and not replaced.",
  },
  parameters: { flags: { ...COMMON_FLAGS, ...REASON_FLAG }, positional: MODEL_PARAMETER },
  async func(this: CtlContext, flags: ReasonFlags, model: string) {
    const request = { model, reason: flags.reason ?? "" };
    const answer = await call(
      this,
      flags,
      (client) => client.pauseModel(request, { timeoutMs: CALL_TIMEOUT_MS }),
    );
    this.io.out(`${decided(answer.model, model)}; undo with: heddle models resume ${model}\n`);
  },
});

export const resume = buildCommand({
  docs: { brief: "End the pause of a model" },
  parameters: { flags: COMMON_FLAGS, positional: MODEL_PARAMETER },
  async func(this: CtlContext, flags: CommonFlags, model: string) {
    const answer = await call(
      this,
      flags,
      (client) => client.resumeModel({ model }, { timeoutMs: CALL_TIMEOUT_MS }),
    );
    this.io.out(`${decided(answer.model, model)}\n`);
  },
});

export const retry = buildCommand({
  docs: {
    brief: "Start a model again at once, whatever has failed before",
    fullDescription:
      "Its failed starts and its backoff are forgotten, and profiles that were said " +
      "never to work are tried again.",
  },
  parameters: { flags: COMMON_FLAGS, positional: MODEL_PARAMETER },
  async func(this: CtlContext, flags: CommonFlags, model: string) {
    const answer = await call(
      this,
      flags,
      (client) => client.retryModel({ model }, { timeoutMs: CALL_TIMEOUT_MS }),
    );
    this.io.out(`${decided(answer.model, model)}; watch it with: heddle explain ${model}\n`);
  },
});

/** "demo is paused, 1/2 ready". */
export function decided(model: ModelView | undefined, asked: string): string {
  if (model === undefined) return `${asked} is not in the catalog`;
  const parts = [
    ...(model.paused ? ["paused"] : []),
    ...(model.heldReplicas === undefined ? [] : [`held at ${model.heldReplicas}`]),
    `${model.readyReplicas}/${model.desiredReplicas} ready`,
  ];
  return `${model.name} is ${parts.join(", ")}`;
}
