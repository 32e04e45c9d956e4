import { equal } from "node:assert/strict";
import type { Role } from "@heddle/common/identity";
import { daysLeft } from "./days_left.ts";

const DAY_MS = 86_400_000;

function shown(role: Role, name: string, endsInDays: number) {
  return {
    identity: { cluster: "c", role, name },
    hosts: [],
    serial: "00",
    notBefore: (endsInDays - 90) * DAY_MS,
    notAfter: endsInDays * DAY_MS,
  };
}

Deno.test("daysLeft() has a word only on the last third, and on the newest of a holder", () => {
  const left = (certificates: Parameters<typeof daysLeft>[0], names = ["n1"]) =>
    daysLeft(certificates, { role: "agent", names, now: 0 });
  equal(left([shown("agent", "n1", 89)]), undefined);
  equal(left([shown("agent", "n1", 31)]), undefined);
  equal(left([shown("agent", "n1", 29)]), 29);
  equal(left([shown("agent", "n1", 0.5)]), 0);
  equal(left([shown("agent", "n1", -1)]), 0);
  equal(left([]), undefined);
  equal(left([shown("router", "n1", 3), shown("agent", "n2", 3)]), undefined);
  equal(left([shown("agent", "n1", 3), shown("agent", "n1", 80)]), undefined);
  equal(left([shown("agent", "h", 3)], ["h/1", "h", "h-1"]), 3);
});
