/** What a request costs, in millionths of a unit. */
import type { Usage } from "../usage.ts";

export type Price =
  /** For a million tokens each; cached ones are paid as cached ones only. */
  | {
    readonly kind: "tokens";
    readonly promptMicro: number;
    readonly cachedMicro: number;
    readonly completionMicro: number;
  }
  | { readonly kind: "gpu_second"; readonly micro: number }
  | { readonly kind: "request"; readonly micro: number };

/** A model without a price of its own costs one unit for each request. */
export const PRICE_BY_DEFAULT: Price = { kind: "request", micro: 1_000_000 };

/** What prices are asked of. */
export interface Consumed {
  readonly usage: Usage;
  /** Time at the engine, and the GPUs of its replica. */
  readonly engineMs: number;
  readonly gpus: number;
}

/** Whole millionths, rounded. What did no work costs nothing, which is the caller's to know. */
export function costMicro(price: Price, { usage, engineMs, gpus }: Consumed): number {
  switch (price.kind) {
    case "request":
      return price.micro;
    case "gpu_second":
      return Math.round(price.micro * gpus * engineMs / 1_000);
    case "tokens": {
      const cached = Math.min(usage.cachedTokens ?? 0, usage.promptTokens);
      const micro = (usage.promptTokens - cached) * price.promptMicro +
        cached * price.cachedMicro + usage.completionTokens * price.completionMicro;
      return Math.round(micro / 1_000_000);
    }
  }
}

/** It costs nothing, so a spent budget does not stop it. */
export function isFree(price: Price): boolean {
  switch (price.kind) {
    case "request":
    case "gpu_second":
      return price.micro === 0;
    case "tokens":
      return price.promptMicro === 0 && price.cachedMicro === 0 && price.completionMicro === 0;
  }
}
