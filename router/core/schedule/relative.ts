/**
 * Turns costs into scores: the least cost is 1, twice of it about a half. `unit` is what makes no
 * difference: without it, 1 ms would be five times better than 5 ms. NaN stays NaN.
 */
export function relative(costs: readonly number[], unit: number): readonly number[] {
  let least = Infinity;
  for (const cost of costs) if (cost < least) least = cost;
  return costs.map((cost) => (least + unit) / (cost + unit));
}
