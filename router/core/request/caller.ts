/** Who sent a request, as far as it matters for what follows. */
import type { Band } from "../admission/band.ts";
import type { TenantKey } from "../tenancy/key.ts";

export interface Caller {
  /** A short fingerprint of the key, fit for logs; "anonymous" where no key is wanted. */
  readonly id: string;
  /** Whose requests share: tenants get equal parts of a band, and no prefix of another's cache. */
  readonly tenant: string;
  /** What its requests get that do not ask for a band; undefined: what the model says. */
  readonly band: Band | undefined;
  /** The best band it may have; undefined: what the settings say. */
  readonly bandCeiling: Band | undefined;
  /** How its requests weigh replicas; undefined: what the header or the model says. */
  readonly routingProfile: string | undefined;
  /** It may ask why a replica was chosen, which tells of the others. */
  readonly mayExplain: boolean;
  /** What control knows of the key; undefined where no key of control's is shown. */
  readonly key: TenantKey | undefined;
}

/** The tenant of whoever has no other. */
const ONE_TENANT = "default";

/** A caller of whom nothing is known but its key. */
export function plainCaller(id: string): Caller {
  return {
    id,
    tenant: ONE_TENANT,
    band: undefined,
    bandCeiling: undefined,
    routingProfile: undefined,
    mayExplain: false,
    key: undefined,
  };
}

/** Whoever calls where no key is wanted: on loopback, and so the operator or a test. */
export const ANONYMOUS: Caller = { ...plainCaller("anonymous"), mayExplain: true };
