/** A measurement in words. */
import type {
  Measurement,
  ModelCapacity,
  RecordMeasurementResponse,
} from "@heddle/proto/gen/capacity";
import { visible } from "../table.ts";
import { formatTime } from "../time_text.ts";

/** "6.1"; small rates keep two digits that say something. */
export function rateWords(perSecond: number): string {
  return perSecond === 0 ? "0" : perSecond >= 10 ? perSecond.toFixed(1) : perSecond.toFixed(2);
}

/** "sim 0.1.0, 24 at a time, first token within 1000 ms and 40 ms a token, 2026-11-30 … by ann". */
export function measuredHow(measured: Measurement): string {
  const { engine, engineVersion, concurrency, ttftMs, tpotMs, atMs, by } = measured;
  return visible(
    `${engine} ${engineVersion}, ${Math.round(concurrency)} at a time, first token within ${
      Math.round(ttftMs)
    } ms and ${Math.round(tpotMs)} ms a token, ${formatTime(Number(atMs))} by ${by}`,
  );
}

/** "6.14/s", or "about 6.14/s" where it did not repeat. */
export function carriedWords({ requestsPerSecond, unstable }: Measurement): string {
  return `${unstable ? "about " : ""}${rateWords(requestsPerSecond)}/s`;
}

/** Said when it is stored, or is not because a better one is. */
export function storedWords({ measurement, kept }: RecordMeasurementResponse): string {
  if (measurement === undefined) return "";
  const { requestsPerSecond, profile, hardwareClass, shape, model, unstable, spread } = measurement;
  const what = `profile ${profile} on ${hardwareClass} carries ${unstable ? "about " : ""}${
    rateWords(requestsPerSecond)
  } requests of shape ${shape} a second`;
  const seen = `heddle capacity ${visible(model)} --shape ${visible(shape)}`;
  if (kept) {
    return `Not stored, because it is not stable and an earlier one is: one replica of ` +
      `${visible(what)} (${measuredHow(measurement)}). ${seen}\n`;
  }
  const doubt = unstable
    ? `Marked as not stable: repeated measurements were ${Math.round(100 * spread)} % apart. ` +
      "Measure again while nothing else sends there, or for longer: --seconds. "
    : "";
  return `Stored: one replica of ${visible(what)}. ${doubt}` +
    `What the fleet carries by it: ${seen}\n`;
}

/** What weights rest on that did not repeat, before they are set by it; empty where all did. */
export function doubtWords({ model, shape, profiles }: ModelCapacity): string {
  return profiles.flatMap(({ profile, measured }) =>
    measured?.unstable !== true ? [] : [
      visible(
        `Not stable: profile ${profile} was measured ${
          Math.round(100 * measured.spread)
        } % apart. ` +
          `Measure it again while nothing else sends there: heddle bench ${model} ` +
          `--profile ${profile} --shape ${shape}`,
      ) + "\n",
    ]
  ).join("");
}
