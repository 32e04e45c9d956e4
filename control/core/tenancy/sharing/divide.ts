/** How routers share one limit. */

/**
 * Shares of `limit` for each demand, in its order. Who wants less than an even share gets what they
 * want; what is left after all demands is spread evenly, so that nobody has to ask for a first request.
 * The sum is never above the limit, and reaches it. With `whole`, shares are whole numbers. Pure.
 */
export function divide(
  limit: number,
  demands: readonly number[],
  form: "whole" | "fractions" = "fractions",
): readonly number[] {
  if (demands.length === 0) return [];
  const shares = satisfy(limit, demands);
  const left = Math.max(0, limit - shares.reduce((sum, share) => sum + share, 0));
  const even = left / demands.length;
  const exact = shares.map((share) => share + even);
  return form === "whole" ? rounded(limit, exact) : exact;
}

/** Fills every demand to the same level, as water would: nobody gets more than they want. */
function satisfy(limit: number, demands: readonly number[]): number[] {
  const shares = demands.map(() => 0);
  const order = demands.map((_, index) => index)
    .sort((a, b) => (demands[a] ?? 0) - (demands[b] ?? 0));
  let left = limit;
  for (const [place, index] of order.entries()) {
    const even = left / (order.length - place);
    const share = Math.max(0, Math.min(demands[index] ?? 0, even));
    shares[index] = share;
    left -= share;
  }
  return shares;
}

// What rounding down leaves goes to the largest fractions, the first of equal ones.
function rounded(limit: number, exact: readonly number[]): number[] {
  const shares = exact.map(Math.floor);
  let left = Math.floor(limit) - shares.reduce((sum, share) => sum + share, 0);
  // Thirds are not all the same to a computer.
  const fraction = (share: number) => Math.round((share - Math.floor(share)) * 1e9);
  const order = exact.map((share, index) => ({ index, fraction: fraction(share) }))
    .sort((a, b) => b.fraction - a.fraction || a.index - b.index);
  for (const { index } of order) {
    if (left <= 0) break;
    shares[index] = (shares[index] ?? 0) + 1;
    left--;
  }
  return shares;
}
