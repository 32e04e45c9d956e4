/** Who sent a request, as far as it matters for what follows. */
export interface Caller {
  /** A short fingerprint of the key, fit for logs; "anonymous" where no key is wanted. */
  readonly id: string;
}

export const ANONYMOUS: Caller = { id: "anonymous" };
