/** What a request asks of its scheduling: how long it is, what caches may have of it, what counts. */
import { blocksOf, type Hash64, type PromptBlocks } from "../affinity/blocks.ts";
import { keyOf } from "../affinity/rendezvous.ts";
import { reservedTokens } from "../admission/reserved_tokens.ts";
import type { Caller } from "../request/caller.ts";
import type { RequestHeaders } from "../request/credential.ts";
import type { ParsedRequest } from "../request/request.ts";
import type { Wanted } from "./candidate.ts";
import { type ProfileWeights, routingProfileOf } from "./routing_profile.ts";
import type { RoutingProfile } from "./scorer.ts";
import type { Picked } from "./pick.ts";
import type { Weights } from "./scorers.ts";

export interface Ask extends Wanted {
  readonly blocks: PromptBlocks | undefined;
  readonly profile: RoutingProfile;
  readonly weights: Weights;
  /** Hears why, at once: all candidates with their scores are too much to keep for a request's life. */
  readonly onPicked?: (picked: Picked) => void;
}

export interface AskOptions {
  readonly caller: Caller;
  readonly headers: RequestHeaders;
  readonly request: ParsedRequest;
  /** What the model's requests are, where neither key nor header says. */
  readonly modelProfile: string;
}

/** Nobody's session has a longer name. */
const SESSION_CHARS_MAX = 256;

/** Everything but where the request has been. */
export function askOf(
  { caller, headers, request, modelProfile }: AskOptions,
  profiles: ProfileWeights,
  hash: Hash64,
): Omit<Ask, "tried"> {
  const profile = routingProfileOf({
    caller: caller.routingProfile,
    header: single(headers["x-heddle-profile"]),
    model: modelProfile,
  });
  const weights = profiles[profile];
  const session = single(headers["x-heddle-session"])?.slice(0, SESSION_CHARS_MAX);
  const blocks = weights.prefix > 0 || weights.latency > 0
    ? promptBlocks(request, caller.tenant, hash)
    : undefined;
  return {
    promptTokens: request.promptTokensEstimate,
    tokens: reservedTokens(request),
    streamed: request.stream,
    conversation: blocks?.head,
    session: session === undefined || session === ""
      ? undefined
      : keyOf(`${caller.tenant}\n${session}`),
    // Who may ask why may also choose: to measure one replica is to learn of it.
    only: caller.mayExplain ? single(headers["x-heddle-replica"]) : undefined,
    blocks,
    profile,
    weights,
  };
}

function promptBlocks(
  request: ParsedRequest,
  salt: string,
  hash: Hash64,
): PromptBlocks | undefined {
  const prompt = request.conversation();
  return prompt && blocksOf(prompt, { hash, salt, data: prompt.data });
}

function single(value: string | readonly string[] | undefined): string | undefined {
  return typeof value === "string" ? value : undefined;
}
