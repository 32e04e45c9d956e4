/** How weights arrive: the size of the folder where they are put, and how fast it grows. */

/** What one look at a place gave. */
export type StagingReading =
  | {
    readonly kind: "read";
    readonly directory: string;
    readonly bytes: number;
    readonly at: number;
  }
  /** It is there and cannot be read. */
  | { readonly kind: "unavailable"; readonly directory: string; readonly why: string }
  /** No place was found: nothing is claimed. */
  | { readonly kind: "none" };

export interface StagingClaim {
  readonly directory: string;
  readonly bytes?: number;
  readonly bytesPerSecond?: number;
  readonly unavailable: string;
}

/**
 * What is claimed after a reading; `before` is the last one. A rate is never made up: the first
 * reading of a folder has none, and one that shrinks grows at zero.
 */
export function stagingClaim(
  reading: StagingReading,
  before: StagingReading | undefined,
): StagingClaim | undefined {
  if (reading.kind === "none") return undefined;
  const { directory } = reading;
  if (reading.kind === "unavailable") return { directory, unavailable: reading.why };
  const { bytes } = reading;
  const claim = { directory, bytes, unavailable: "" };
  if (before?.kind !== "read" || before.directory !== directory) return claim;
  const seconds = (reading.at - before.at) / 1_000;
  if (seconds <= 0) return claim;
  return { ...claim, bytesPerSecond: Math.max(0, Math.round((bytes - before.bytes) / seconds)) };
}

/**
 * Places to look at, the first that is there counts. What was told comes alone: where it is not there
 * yet nothing else stands for it.
 */
export function stagingPlaces(
  told: string | undefined,
  env: {
    readonly hubCache: string | undefined;
    readonly hfHome: string | undefined;
    readonly home: string | undefined;
  },
): readonly string[] {
  if (told !== undefined) return [told];
  const { hubCache, hfHome, home } = env;
  const places = [
    hubCache,
    hfHome,
    home && `${home}/.cache/huggingface`,
    "/root/.cache/huggingface",
    "/workspace/.cache/huggingface",
  ];
  return [
    ...new Set(places.flatMap((place) => place === undefined || place === "" ? [] : [place])),
  ];
}
