import { equal } from "node:assert/strict";
import { type GidEntry, roceGidIndex } from "./gid.ts";

const LINK_LOCAL = "fe80:0000:0000:0000:a288:c2ff:fe00:03ec";
const MAPPED = "0000:0000:0000:0000:0000:ffff:c000:0248";

function entry(index: number, gid: string, type: string | undefined, netDevice?: string): GidEntry {
  return { index, gid, type, netDevice };
}

Deno.test("roceGidIndex() goes by type and address, not by custom", () => {
  const pod = [
    entry(4, LINK_LOCAL, "IB/RoCE v1", "net1"),
    entry(5, LINK_LOCAL, "RoCE v2", "net1"),
    entry(6, MAPPED, "IB/RoCE v1", "net1"),
    entry(7, MAPPED, "RoCE v2", "net1"),
  ];
  equal(roceGidIndex(pod, new Map([["net1", ["192.0.2.72"]]])), 7);
  equal(roceGidIndex(pod, new Map()), 7);
  equal(roceGidIndex(pod, new Map([["net1", ["192.0.2.1"]]])), undefined);
});

Deno.test("roceGidIndex() chooses none where a type cannot be read or only IPv6 is there", () => {
  equal(roceGidIndex([entry(3, MAPPED, undefined)], new Map()), undefined);
  equal(roceGidIndex([entry(1, LINK_LOCAL, "RoCE v2")], new Map()), undefined);
  equal(roceGidIndex([], new Map()), undefined);
});
