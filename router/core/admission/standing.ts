/** What a request brings to its admission: its band, whose it is, and what it takes. */
import type { Model } from "../fleet/endpoint.ts";
import type { Caller } from "../request/caller.ts";
import type { RequestHeaders } from "../request/credential.ts";
import type { ParsedRequest } from "../request/request.ts";
import { type Band, bandOf } from "./band.ts";
import { reservedTokens } from "./reserved_tokens.ts";

export interface BandPolicy {
  /** What requests get where nothing says another. */
  readonly fallback: Band;
  /** The best that callers may have whose key does not say. */
  readonly ceiling: Band;
  /** What requests for a model get where neither header nor key says, whatever the catalog has; by its name. */
  readonly ofModel: ReadonlyMap<string, Band>;
}

export interface Standing {
  readonly band: Band;
  readonly tenant: string;
  readonly tokens: number;
  readonly bytes: number;
}

export interface StandingOptions {
  readonly caller: Caller;
  readonly headers: RequestHeaders;
  readonly request: ParsedRequest;
  /** The first that is to be tried, which may not be the one that was asked for. */
  readonly model: Pick<Model, "name" | "band">;
  /** What the body takes in memory. */
  readonly bytes: number;
}

export function standingOf(
  { caller, headers, request, model, bytes }: StandingOptions,
  policy: BandPolicy,
): Standing {
  const asked = headers["x-heddle-band"];
  return {
    band: bandOf({
      header: typeof asked === "string" ? asked : undefined,
      caller: caller.band,
      model: policy.ofModel.get(model.name) ?? model.band,
      fallback: policy.fallback,
      ceiling: caller.bandCeiling ?? policy.ceiling,
    }),
    tenant: caller.tenant,
    tokens: reservedTokens(request),
    bytes,
  };
}
