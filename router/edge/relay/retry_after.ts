/** Reads what an engine asks for in `Retry-After`: seconds or a date. 0 when it asks for nothing. */
export function retryAfterMs(headers: ReadonlyMap<string, string>, now = Date.now()): number {
  const text = headers.get("retry-after")?.trim() ?? "";
  if (text === "") return 0;
  const ms = /^\d+(\.\d+)?$/.test(text) ? Number(text) * 1_000 : Date.parse(text) - now;
  return Number.isFinite(ms) ? Math.max(0, ms) : 0;
}
