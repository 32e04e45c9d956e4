/** `ctl models scale`: holds a model at a number of replicas, whatever demand calls for. */
import { buildCommand } from "@stricli/core";
import { confirm } from "../../io.ts";
import { type AdminClient, CALL_TIMEOUT_MS } from "../../client.ts";
import {
  call,
  COMMON_FLAGS,
  type CtlContext,
  REASON_FLAG,
  type ReasonFlags,
  type SureFlags,
  YES_FLAG,
} from "../../command.ts";
import { decided } from "./decide.ts";

interface ScaleFlags extends SureFlags, ReasonFlags {
  readonly clear: boolean;
}

export const scale = buildCommand({
  docs: {
    brief: "Hold a model at so many replicas, or --clear to let it scale again",
    fullDescription:
      "The number wins over scaling.min, scaling.max and demand until it is cleared.",
  },
  parameters: {
    flags: {
      ...COMMON_FLAGS,
      ...REASON_FLAG,
      ...YES_FLAG,
      clear: { kind: "boolean", default: false, brief: "Hold it no longer" },
    },
    positional: {
      kind: "tuple",
      parameters: [
        { parse: String, brief: "Name or alias of the model", placeholder: "model" },
        { parse: wholeNumber, brief: "Replicas", placeholder: "replicas", optional: true },
      ],
    },
  },
  async func(this: CtlContext, flags: ScaleFlags, model: string, replicas?: number) {
    const timeoutMs = CALL_TIMEOUT_MS;
    if (flags.clear === (replicas !== undefined)) {
      throw new SyntaxError(`Cannot scale ${model}: want a number, or --clear`);
    }
    const answer = await call(this, flags, async (client) => {
      if (replicas === undefined) return await client.clearScale({ model }, { timeoutMs });
      const fewer = await fewerThanRun(client, model, replicas);
      if (fewer !== undefined) await confirm(this, flags, fewer);
      const request = { model, replicas, reason: flags.reason ?? "" };
      return await client.scaleModel(request, { timeoutMs });
    });
    const undo = replicas === undefined ? "" : `; undo with: heddle models scale ${model} --clear`;
    this.io.out(`${decided(answer.model, model)}${undo}\n`);
  },
});

/** What to ask when running replicas would go; undefined when none would. */
async function fewerThanRun(
  client: AdminClient,
  model: string,
  replicas: number,
): Promise<string | undefined> {
  const { models } = await client.listModels({}, { timeoutMs: CALL_TIMEOUT_MS });
  const view = models.find(({ name, aliases }) => name === model || aliases.includes(model));
  const running = view === undefined ? 0 : view.readyReplicas + view.startingReplicas;
  return running > replicas
    ? `Hold ${view?.name} at ${replicas}? It has ${running}; ${running - replicas} will drain.`
    : undefined;
}

function wholeNumber(text: string): number {
  if (/^\d{1,6}$/.test(text)) return Number(text);
  throw new SyntaxError(`want a whole number below a million, it is "${text}"`);
}
