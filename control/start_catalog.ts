/** The catalog that a control starts with. */
import { formatComplaints } from "@heddle/common/config_file";
import { HeddleError } from "@heddle/proto/error";
import { EMPTY_CATALOG, parseCatalog } from "./core/catalog.ts";
import type { CatalogState } from "./core/world.ts";
import type { StoredCatalog } from "./edge/store/store.ts";

export interface StartCatalog {
  readonly state: CatalogState;
  /**
   * Set when the stored text is not valid for this version: then the file must give a valid one
   * before anything is done, because acting on none would stop what runs.
   */
  readonly invalid: HeddleError | undefined;
}

/** Reads the stored catalog; without one, control starts with no models and revision 0. */
export function startCatalog(stored: StoredCatalog | undefined, file: string): StartCatalog {
  const none = { catalog: EMPTY_CATALOG, text: "", revision: stored?.revision ?? 0 };
  if (stored === undefined) return { state: none, invalid: undefined };
  const parsed = parseCatalog(stored.text, "stored catalog");
  if (parsed.kind === "ok") {
    return { state: { ...stored, catalog: parsed.value }, invalid: undefined };
  }
  const complaints = formatComplaints(parsed.complaints);
  return {
    state: none,
    invalid: new HeddleError(
      "failed_precondition",
      "Cannot start: the catalog that was last applied is not valid for this version, and " +
        `neither is ${file}. Correct that file, or start the version before:\n${complaints}`,
    ),
  };
}
