import { deepEqual, equal, ok } from "node:assert/strict";
import fc from "fast-check";
import { divide } from "./divide.ts";

const EPSILON = 1e-6;
const demands = fc.array(fc.double({ min: 0, max: 1e6, noNaN: true }), {
  minLength: 1,
  maxLength: 12,
});
const limit = fc.double({ min: 0, max: 1e6, noNaN: true });
const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);

Deno.test("divide() gives away the limit, and never more", () => {
  fc.assert(fc.property(limit, demands, (most, wanted) => {
    const shares = divide(most, wanted);
    equal(shares.length, wanted.length);
    ok(Math.abs(sum(shares) - most) <= EPSILON * Math.max(1, most), `${sum(shares)} of ${most}`);
    ok(shares.every((share) => share >= 0));
    const whole = divide(most, wanted, "whole");
    equal(sum(whole), Math.floor(most));
    ok(whole.every((share) => Number.isSafeInteger(share) && share >= 0));
  }));
});

Deno.test("divide() refuses nobody what another does not want", () => {
  fc.assert(fc.property(limit, demands, (most, wanted) => {
    const shares = divide(most, wanted);
    const scale = EPSILON * Math.max(1, most, ...wanted);
    const unmet = wanted.filter((want, index) => (shares[index] ?? 0) < want - scale);
    if (sum(wanted) <= most) return equal(unmet.length, 0);
    // Who does not get what they want has at least as much as anybody else.
    const largest = Math.max(...shares);
    for (const [index, want] of wanted.entries()) {
      const share = shares[index] ?? 0;
      ok(share <= want + scale, "nobody has what another needs");
      if (share < want - scale) ok(share >= largest - scale);
    }
  }));
});

Deno.test("divide() spreads what nobody wants", () => {
  deepEqual(divide(60, [0, 0, 0]), [20, 20, 20]);
  deepEqual(divide(60, [45, 0, 0]), [50, 5, 5]);
  deepEqual(divide(60, [100, 10, 0]), [50, 10, 0]);
  deepEqual(divide(10, [100, 100, 100], "whole"), [4, 3, 3]);
  deepEqual(divide(1, [1, 1, 1], "whole"), [1, 0, 0]);
  deepEqual(divide(0, [5]), [0]);
  deepEqual(divide(5, []), []);
});
