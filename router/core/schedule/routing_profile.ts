/** Routing profiles: how endpoints are weighed for a kind of request, and which one a request gets. */
import { ROUTING_PROFILES, type RoutingProfile } from "./scorer.ts";
import { eachScorer, type Weights } from "./scorers.ts";

export type ProfileWeights = Readonly<Record<RoutingProfile, Weights>>;

/**
 * What each scorer counts where the configuration does not say otherwise. Chat wants its first token
 * soon. Batch wants the fleet used evenly, and nothing computed twice. Long contexts fill caches: what
 * is cached is worth most, and room for the rest comes next.
 */
export const WEIGHTS_DEFAULT: ProfileWeights = {
  chat: weightsOf("chat"),
  batch: weightsOf("batch"),
  "long-context": weightsOf("long-context"),
};

function weightsOf(profile: RoutingProfile): Weights {
  return eachScorer(({ weights }) => weights[profile]);
}

export interface ProfileWishes {
  readonly caller: string | undefined;
  /** The header `x-heddle-profile`. */
  readonly header: string | undefined;
  readonly model: string;
}

/** The key's, else the header's, else the model's; a word that is none of them says nothing. */
export function routingProfileOf({ caller, header, model }: ProfileWishes): RoutingProfile {
  return known(caller) ?? known(header?.trim().toLowerCase()) ?? known(model) ?? "chat";
}

function known(name: string | undefined): RoutingProfile | undefined {
  return ROUTING_PROFILES.find((profile) => profile === name);
}
