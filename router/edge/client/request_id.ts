/** A request's id: the client's own when it is one that can stand in headers and logs. */
const USABLE = /^[A-Za-z0-9][A-Za-z0-9._:@/+=-]{0,127}$/;

/** A key that a client shows in the wrong place must not reach logs and records. */
const KEY = /\bsk-[A-Za-z0-9_-]{8,}/;

export function requestIdOf(header: string | readonly string[] | undefined): string {
  return typeof header === "string" && USABLE.test(header) && !KEY.test(header)
    ? header
    : `req_${crypto.randomUUID().replaceAll("-", "")}`;
}
