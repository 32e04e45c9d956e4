/** What one replica carried within a promise, as it is kept. */
import type { Measurement } from "@heddle/proto/gen/capacity";
import type { Plain } from "@heddle/proto/plain";

export type StoredMeasurement = Plain<Measurement>;

/** The newest of each of these is kept. */
export type MeasurementKey = Pick<
  StoredMeasurement,
  "fingerprint" | "hardwareClass" | "engineVersion" | "shape"
>;

/** Of a profile that needs no GPU. */
export const CPU_CLASS = "cpu";
