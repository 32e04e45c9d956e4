/** Bands: priority classes of requests, and which one a request gets. */

/** Best first. */
export const BANDS = ["platinum", "gold", "silver", "bronze"] as const;

export type Band = (typeof BANDS)[number];

export interface BandWishes {
  /** The header `x-heddle-band`, as the client wrote it. */
  readonly header: string | undefined;
  /** What the key's requests get that do not ask. */
  readonly caller: Band | undefined;
  /** What the model's requests get where neither header nor key says. */
  readonly model: Band | undefined;
  readonly fallback: Band;
  /** The best one that this caller may have. */
  readonly ceiling: Band;
}

/** The header's, else the key's, else the model's; never above the ceiling. An unknown word asks for nothing. */
export function bandOf({ header, caller, model, fallback, ceiling }: BandWishes): Band {
  const asked = readBand(header?.trim().toLowerCase()) ?? caller ?? model ?? fallback;
  return rankOf(asked) < rankOf(ceiling) ? ceiling : asked;
}

/** 0 for the best. */
export function rankOf(band: Band): number {
  return BANDS.indexOf(band);
}

/** The band of that name. */
export function readBand(text: string | undefined): Band | undefined {
  return BANDS.find((band) => band === text);
}
