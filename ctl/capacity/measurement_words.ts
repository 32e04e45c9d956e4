/** A measurement in words. */
import type { Measurement } from "@heddle/proto/gen/capacity";
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

/** Said when it is stored. */
export function storedWords(measured: Measurement): string {
  const { requestsPerSecond, profile, hardwareClass, shape, model } = measured;
  const what = `profile ${profile} on ${hardwareClass} carries ${rateWords(requestsPerSecond)} ` +
    `requests of shape ${shape} a second`;
  return `Stored: one replica of ${visible(what)}. ` +
    `What the fleet carries by it: heddle capacity ${visible(model)} --shape ${visible(shape)}\n`;
}
