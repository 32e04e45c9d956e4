/** How long a peer's certificate still holds, once that is worth a word. */
import type { Role, ShownCertificate } from "@heddle/common/identity";

const DAY_MS = 86_400_000;

/** It is renewed at two thirds; who has less than this left has not been. */
const WORTH_A_WORD = 1 / 3;

/**
 * Whole days left of the certificate that a peer of one of these names shows; undefined while more than
 * a third of its life is left, and for one that is not connected. Pure.
 */
export function daysLeft(
  shown: readonly ShownCertificate[],
  { role, names, now }: {
    readonly role: Role;
    readonly names: readonly string[];
    readonly now: number;
  },
): number | undefined {
  const own = shown.filter(({ identity }) =>
    identity?.role === role && names.includes(identity.name)
  );
  const newest = newestOf(own);
  if (newest === undefined) return undefined;
  const leftMs = newest.notAfter - now;
  return leftMs > (newest.notAfter - newest.notBefore) * WORTH_A_WORD
    ? undefined
    : Math.max(0, Math.floor(leftMs / DAY_MS));
}

/** The one that holds longest: after a renewal the one before may be shown still. */
export function newestOf(shown: readonly ShownCertificate[]): ShownCertificate | undefined {
  return shown.reduce<ShownCertificate | undefined>(
    (best, each) => best === undefined || each.notAfter > best.notAfter ? each : best,
    undefined,
  );
}
