/**
 * Measurements as rows: what they are known by, and all of one as JSON. A row that this version cannot
 * read is left out: a capacity that nobody knows is measured again, and nothing is decided by it.
 */
import { create, fromJsonString, toJsonString } from "@bufbuild/protobuf";
import { type Measurement, MeasurementSchema } from "@heddle/proto/gen/capacity";
import type { StoredMeasurement } from "../../core/capacity/measurement.ts";

/** Every change of a profile makes a new one, and nobody asks for those of long ago. */
export const MEASUREMENTS_MAX = 500;

/** In the order of the table's columns. */
export function measurementRow(
  measurement: StoredMeasurement,
): readonly [string, string, string, string, number, string] {
  const { fingerprint, hardwareClass, engineVersion, shape, atMs } = measurement;
  const value = toJsonString(MeasurementSchema, create(MeasurementSchema, measurement));
  return [fingerprint, hardwareClass, engineVersion, shape, Number(atMs), value];
}

export function measurementsOf(values: readonly string[]): readonly Measurement[] {
  return values.flatMap((value) => {
    try {
      return [fromJsonString(MeasurementSchema, value, { ignoreUnknownFields: true })];
    } catch {
      return [];
    }
  });
}
