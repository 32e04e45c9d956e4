/** How texts of catalogs are told apart without keeping them. */
import { createHash } from "node:crypto";

/** SHA-256 of the text, in hex. */
export function catalogHash(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}
