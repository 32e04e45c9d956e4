/**
 * Which fields are asked of nvidia-smi, in which call. One name that a driver does not know voids
 * the whole call, so the fields are asked in small groups, and of each group only what this driver
 * lists; names that come and go are asked by the spelling that most drivers accept.
 */

/** Groups that are asked apart, so that each fails alone. */
export type FieldGroup = "identity" | "live" | "mode" | "health" | "recent" | "pcie";

/** `name` is last in its group: it is free text, all others have a fixed shape. */
export const FIELDS: Readonly<Record<FieldGroup, readonly string[]>> = {
  identity: [
    ...["index", "uuid", "pci.bus_id", "pci.device_id", "memory.total", "compute_cap"],
    ...["driver_version", "name"],
  ],
  live: ["uuid", "memory.used", "utilization.gpu", "temperature.gpu", "pstate"],
  mode: ["uuid", "mig.mode.current", "mig.mode.pending", "persistence_mode", "compute_mode"],
  health: [
    ...["uuid", "remapped_rows.pending", "remapped_rows.failure", "retired_pages.pending"],
    "clocks_throttle_reasons.active",
  ],
  recent: [
    ...["uuid", "gpu_recovery_action", "fabric.state", "fabric.status", "fabric.cliqueId"],
    ...["fabric.clusterUuid", "fabric.health.summary"],
  ],
  // The generation is not asked for: it falls whenever a GPU is idle.
  pcie: ["uuid", "pcie.link.width.current", "pcie.link.width.max"],
};

/** Without these a row is worth nothing; every driver knows them. */
const NEEDED: ReadonlySet<string> = new Set(["index", "uuid", "name", "memory.total"]);

/**
 * Names that the driver lists in `--help-query-gpu`: `"name"` or `"name" or "alias"` at the start of
 * a line. Undefined when the text is not such a list, and then nothing is known about the driver.
 */
export function parseFieldList(help: string): ReadonlySet<string> | undefined {
  const names = new Set<string>();
  for (const line of help.split(/\r?\n/)) {
    const match = /^"([\w.-]{1,100})"((?: or "[\w.-]{1,100}")*)/.exec(line);
    if (match === null) continue;
    names.add(match[1] ?? "");
    for (const alias of (match[2] ?? "").matchAll(/"([\w.-]+)"/g)) names.add(alias[1] ?? "");
  }
  return names.has("uuid") || names.has("gpu_uuid") ? names : undefined;
}

/**
 * The fields of `group` to ask: those `listed` (undefined: unknown, then all but the recent ones,
 * which old drivers refuse), less those `refused` before. Empty when only the UUID would be left.
 */
export function fieldsToAsk(
  group: FieldGroup,
  listed: ReadonlySet<string> | undefined,
  refused: ReadonlySet<string>,
): readonly string[] {
  if (listed === undefined && group === "recent") return [];
  const fields = FIELDS[group].filter((field) =>
    NEEDED.has(field) || (!refused.has(field) && (listed === undefined || listed.has(field)))
  );
  return fields.length > 1 ? fields : [];
}
