/** The one decision on a caller: what its key allows of where it comes from and where it goes. */
import type { Caller } from "../request/caller.ts";
import { next, refuse, type Step } from "../request/outcome.ts";
import { mayComeFrom, mayUsePath } from "./key.ts";

export interface Whereabouts {
  /** The client's address, as trusted proxies tell. */
  readonly address: string;
  /**
   * The path of the route that was matched, which is not what the client wrote; undefined for what
   * every holder of a key may ask.
   */
  readonly path: string | undefined;
}

/** A caller without a key of control's may go everywhere. */
export function authorise(caller: Caller, { address, path }: Whereabouts): Step<Caller> {
  const { key } = caller;
  if (key === undefined) return next(caller);
  if (!mayComeFrom(key, address)) {
    return refuse({
      reason: "address_not_allowed",
      message: `The key may not be used from ${address}`,
    });
  }
  if (path !== undefined && !mayUsePath(key, path)) {
    return refuse({ reason: "path_not_allowed", message: `The key may not use ${path}` });
  }
  return next(caller);
}
