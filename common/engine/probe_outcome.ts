/** What a probe of an engine found. */
export type ProbeOutcome =
  /** It answers, lists the model, and gave a token when it was asked for one. */
  | { readonly kind: "ready"; readonly maxModelLen?: number }
  /** Not there yet, as every engine is while it loads. `why` in a few words. */
  | { readonly kind: "waiting"; readonly why: string }
  /** It answers, but not as it must. */
  | { readonly kind: "wrong"; readonly reason: ProbeReason; readonly why: string };

export type ProbeReason = "wrong_key" | "model_not_listed" | "no_token" | "not_answering";
