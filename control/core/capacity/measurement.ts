/** What one replica carried within a promise, as it is kept. */
import type { Measurement } from "@heddle/proto/gen/capacity";
import type { Plain } from "@heddle/proto/plain";

export type StoredMeasurement = Plain<Measurement>;

/** Of a profile that needs no GPU. */
export const CPU_CLASS = "cpu";
