/** `ctl prices`: what requests to a model cost, in units. */
import { buildCommand } from "@stricli/core";
import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  type ModelPrice,
  ModelPriceSchema,
  type Price,
  type PriceSchema,
} from "@heddle/proto/gen/tenancy";
import { CALL_TIMEOUT_MS } from "../../client.ts";
import {
  COMMON_FLAGS,
  type CommonFlags,
  type CtlContext,
  LIST_ALIASES,
  LIST_FLAGS,
  type ListFlags,
} from "../../command.ts";
import { fieldsOf, toRecord } from "../../record.ts";
import type { Listing } from "../../table.ts";
import { callTenancy, listTenancy } from "./client.ts";
import { formatUnits, parseUnits } from "./units.ts";

export const listPrices = buildCommand({
  docs: { brief: "List what models cost" },
  parameters: { flags: LIST_FLAGS, aliases: LIST_ALIASES },
  async func(this: CtlContext, flags: ListFlags) {
    await listTenancy(
      this,
      flags,
      async (client) =>
        priceListing((await client.listPrices({}, { timeoutMs: CALL_TIMEOUT_MS })).prices),
    );
  },
});

interface PriceFlags extends CommonFlags {
  readonly prompt?: bigint;
  readonly cached?: bigint;
  readonly completion?: bigint;
  readonly gpuSecond?: bigint;
  readonly request?: bigint;
  readonly default: boolean;
}

const units = (brief: string) =>
  ({ kind: "parsed", parse: parseUnits, optional: true, placeholder: "units", brief }) as const;

export const setPrice = buildCommand({
  docs: {
    brief: "Set what a model costs",
    fullDescription:
      "By tokens, by GPU-second, or by request. 0 is free, and can be used also when " +
      "a budget is spent. A model without a price costs 1 unit for each request.",
  },
  parameters: {
    flags: {
      ...COMMON_FLAGS,
      prompt: units("For a million prompt tokens"),
      cached: units("For a million of them that the engine had cached; as --prompt when not said"),
      completion: units("For a million completion tokens"),
      gpuSecond: units("For a second of one GPU of its replica"),
      request: units("For each request"),
      default: { kind: "boolean", default: false, brief: "Back to 1 unit for each request" },
    },
    positional: {
      kind: "tuple",
      parameters: [{ parse: String, brief: "Name of the model", placeholder: "model" }],
    },
  },
  async func(this: CtlContext, flags: PriceFlags, model: string) {
    const price = priceOf(flags);
    const { before } = await callTenancy(
      this,
      flags,
      (client) =>
        client.setPrice(price === undefined ? { model } : { model, price }, {
          timeoutMs: CALL_TIMEOUT_MS,
        }),
    );
    const was = before === undefined ? "1 for each request" : formatPrice(before);
    this.io.out(`The price of ${model} is set; it was ${was}\n`);
  },
});

/** Undefined for the default. Throws SyntaxError for flags that do not make one price. */
export function priceOf(
  flags: Omit<PriceFlags, "context">,
): MessageInitShape<typeof PriceSchema> | undefined {
  const { prompt, cached, completion, gpuSecond, request } = flags;
  const byTokens = prompt !== undefined || completion !== undefined || cached !== undefined;
  const ways = [byTokens, gpuSecond !== undefined, request !== undefined, flags.default];
  if (ways.filter(Boolean).length !== 1) {
    throw new SyntaxError(
      "want one of: --prompt and --completion, --gpu-second, --request, --default",
    );
  }
  if (gpuSecond !== undefined) return { basis: { case: "gpuSecondMicro", value: gpuSecond } };
  if (request !== undefined) return { basis: { case: "requestMicro", value: request } };
  if (flags.default) return undefined;
  if (prompt === undefined || completion === undefined) {
    throw new SyntaxError("want both --prompt and --completion");
  }
  const value = {
    promptMicro: prompt,
    cachedMicro: cached ?? prompt,
    completionMicro: completion,
  };
  return { basis: { case: "tokens", value } };
}

/** The table of prices. */
export function priceListing(prices: readonly ModelPrice[]): Listing<ModelPrice> {
  return {
    rows: prices,
    empty:
      "No price is set: each request costs 1 unit. Set one with: heddle prices set MODEL --request 2",
    fields: fieldsOf(ModelPriceSchema),
    record: (price) => ({ ...toRecord(ModelPriceSchema, price), price: plainPrice(price.price) }),
    columns: [
      { title: "MODEL", cell: ({ model }) => model },
      { title: "PRICE", cell: ({ price }) => price === undefined ? "" : formatPrice(price) },
    ],
  };
}

function formatPrice({ basis }: Price): string {
  switch (basis.case) {
    case "tokens": {
      const { promptMicro, cachedMicro, completionMicro } = basis.value;
      return `per million: ${formatUnits(promptMicro)} prompt, ${
        formatUnits(cachedMicro)
      } cached, ` +
        `${formatUnits(completionMicro)} completion`;
    }
    case "gpuSecondMicro":
      return `${formatUnits(basis.value)} for each GPU-second`;
    case "requestMicro":
      return `${formatUnits(basis.value)} for each request`;
    default:
      return "of a kind that this ctl does not know";
  }
}

// For machines, in millionths as everywhere on the wire.
function plainPrice(price: Price | undefined) {
  const basis = price?.basis;
  switch (basis?.case) {
    case "tokens":
      return {
        prompt_micro: Number(basis.value.promptMicro),
        cached_micro: Number(basis.value.cachedMicro),
        completion_micro: Number(basis.value.completionMicro),
      };
    case "gpuSecondMicro":
      return { gpu_second_micro: Number(basis.value) };
    case "requestMicro":
      return { request_micro: Number(basis.value) };
    default:
      return null;
  }
}
