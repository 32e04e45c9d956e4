import { equal, ok } from "node:assert/strict";
import { keyOf, rendezvous } from "./rendezvous.ts";

const IDS = Array.from({ length: 8 }, (_, index) => keyOf(`replica-${index}`));

Deno.test("rendezvous() spreads keys evenly", () => {
  const counts = IDS.map(() => 0);
  for (let key = 0; key < 8_000; key++) {
    const home = rendezvous(keyOf(`conversation ${key}`), IDS);
    counts[home] = (counts[home] ?? 0) + 1;
  }
  for (const count of counts) ok(count > 850 && count < 1_150, `${counts}`);
});

Deno.test("rendezvous() moves only the keys of a replica that is gone", () => {
  const fewer = IDS.slice(0, -1);
  for (let key = 0; key < 1_000; key++) {
    const home = rendezvous(keyOf(`${key}`), IDS);
    if (home < fewer.length) equal(rendezvous(keyOf(`${key}`), fewer), home);
  }
  equal(rendezvous(1, []), -1);
});

Deno.test("rendezvous() uses all of a hash of 53 bits", () => {
  const homes = new Set(
    Array.from({ length: 64 }, (_, index) => rendezvous(7 + index * 2 ** 32, IDS)),
  );
  ok(homes.size > 4);
});
