import { equal, notEqual } from "node:assert/strict";
import { clientAddress, parseNetwork } from "./network.ts";

function trusting(...texts: readonly string[]) {
  return texts.map((text) => {
    const network = parseNetwork(text);
    if (network === undefined) throw new Error(text);
    return network;
  });
}

const OURS = trusting("10.0.0.0/8", "fd00::/8", "192.0.2.7");

Deno.test("clientAddress() believes only proxies of ours", () => {
  const cases: [peer: string, forwarded: string | undefined, want: string][] = [
    ["203.0.113.5", "198.51.100.1", "203.0.113.5"],
    ["10.1.2.3", undefined, "10.1.2.3"],
    ["10.1.2.3", "198.51.100.1", "198.51.100.1"],
    ["::ffff:10.1.2.3", "198.51.100.1", "198.51.100.1"],
    ["192.0.2.7", "198.51.100.1:4711", "198.51.100.1"],
    ["192.0.2.8", "198.51.100.1", "192.0.2.8"],
    ["fd12::1", "[2001:db8::5]:443", "2001:db8::5"],
    ["fe80::1%eth0", "198.51.100.1", "fe80::1"],
    // Written by the client itself, before a proxy of ours added what it saw.
    ["10.1.2.3", "1.1.1.1, 198.51.100.1", "198.51.100.1"],
    ["10.1.2.3", "1.1.1.1, 198.51.100.1, 10.9.9.9", "198.51.100.1"],
    ["10.1.2.3", "10.9.9.9", "10.9.9.9"],
    ["10.1.2.3", "unknown", "10.1.2.3"],
    ["10.1.2.3", "198.51.100.1, junk", "10.1.2.3"],
    ["10.1.2.3", "", "10.1.2.3"],
  ];
  for (const [peer, forwarded, want] of cases) {
    equal(clientAddress(peer, forwarded, OURS), want, `${peer} ${forwarded}`);
  }
});

Deno.test("parseNetwork() reads addresses and networks, and nothing else", () => {
  for (
    const text of [
      "1.2.3.4",
      "0.0.0.0/0",
      "10.0.0.0/8",
      "::1",
      "::",
      "fd00::/8",
      "::ffff:1.2.3.4/120",
    ]
  ) notEqual(parseNetwork(text), undefined, text);
  for (
    const text of [
      "",
      "1.2.3",
      "1.2.3.256",
      "01.2.3.4",
      "1.2.3.4/33",
      "1.2.3.4/8/8",
      "1.2.3.4/",
      "1::2::3",
      "1:2:3:4:5:6:7",
      "1:2:3:4:5:6:7:8:9",
      "::1/129",
      "12345::",
      "host",
    ]
  ) equal(parseNetwork(text), undefined, text);
});

Deno.test("a network holds IPv4 alone, or all of IPv6 with it", () => {
  const from = (text: string, peer: string) => clientAddress(peer, "198.51.100.1", trusting(text));
  equal(from("0.0.0.0/0", "203.0.113.5"), "198.51.100.1");
  equal(from("0.0.0.0/0", "2001:db8::1"), "2001:db8::1");
  equal(from("::ffff:10.0.0.0/104", "10.7.7.7"), "198.51.100.1");
  equal(from("::1", "::1"), "198.51.100.1");
});
