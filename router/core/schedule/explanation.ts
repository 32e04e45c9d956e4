/**
 * Why a request went where it went, in one line of JSON for a header: how long it waited and why,
 * every candidate with its scores, and why the others could not be used.
 */
import type { Band } from "../admission/band.ts";
import type { WaitReason } from "../admission/model_queue.ts";
import { firstTokenMs, type Wanted } from "./candidate.ts";
import type { Picked } from "./pick.ts";
import type { RoutingProfile } from "./scorer.ts";

export interface Circumstances {
  readonly band: Band;
  readonly profile: RoutingProfile;
  readonly waitedMs: number;
  readonly why: WaitReason;
}

/** Clients read heads up to 16 KiB, of which others want some too. */
const BYTES_MAX = 8_192;

/** ASCII without line breaks. Of too many candidates the worst are counted only. */
export function explanation(picked: Picked, wanted: Wanted, about: Circumstances): string {
  const { compared, scored, rejections, candidate } = picked;
  const ranked = compared.map((each, index) => ({
    replica: each.endpoint.replicaId,
    score: rounded(scored.totals[index] ?? 0),
    scores: Object.fromEntries(
      [...scored.byScorer].map(([name, scores]) => [name, known(scores[index])]),
    ),
    in_flight: each.inFlight + each.othersInFlight,
    cached_tokens: Math.round(each.cachedTokens),
    first_token_ms: Math.round(firstTokenMs(each, wanted)),
  })).sort((a, b) => b.score - a.score);
  const rejected = rejections.map(({ replicaId, reason }) => ({ replica: replicaId, reason }));
  const of = (count: number) =>
    ascii(JSON.stringify({
      replica: candidate.endpoint.replicaId,
      band: about.band,
      waited_ms: Math.round(about.waitedMs),
      waited_for: about.why,
      profile: about.profile,
      candidates: ranked.slice(0, count),
      rejected: rejected.slice(0, count),
      ...(count < Math.max(ranked.length, rejected.length)
        ? { left_out: Math.max(0, ranked.length - count) + Math.max(0, rejected.length - count) }
        : {}),
    }));
  let count = Math.max(ranked.length, rejected.length);
  let text = of(count);
  while (text.length > BYTES_MAX && count > 0) {
    count = Math.floor(count * Math.min(0.9, BYTES_MAX / text.length));
    text = of(count);
  }
  return text;
}

function rounded(value: number): number {
  return Math.round(value * 1_000) / 1_000;
}

/** JSON knows no NaN. */
function known(score: number | undefined): number | null {
  return score === undefined || Number.isNaN(score) ? null : rounded(score);
}

function ascii(json: string): string {
  return json.replace(
    /[^\x20-\x7e]/g,
    (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, "0")}`,
  );
}
