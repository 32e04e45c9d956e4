/** A request's id: the client's own when it is one that can stand in headers and logs. */
const USABLE = /^[A-Za-z0-9][A-Za-z0-9._:@/+=-]{0,127}$/;

export function requestIdOf(header: string | readonly string[] | undefined): string {
  return typeof header === "string" && USABLE.test(header)
    ? header
    : `req_${crypto.randomUUID().replaceAll("-", "")}`;
}
