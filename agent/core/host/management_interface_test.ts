import { deepEqual } from "node:assert/strict";
import { managementInterface } from "./management_interface.ts";

const INTERFACES = [
  { name: "lo", address: "127.0.0.1", netmask: "255.0.0.0" },
  { name: "ens3", address: "192.0.2.2", netmask: "255.255.255.0" },
  { name: "lo", address: "::1", netmask: "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff" },
  { name: "ens3", address: "fd00::2", netmask: "ffff:ffff:ffff:ffff::" },
  { name: "ens3", address: "fe80::fc:ff:fe00:1", netmask: "ffff:ffff:ffff:ffff::" },
];

Deno.test("managementInterface() finds an address in any spelling", () => {
  const addresses = [
    ...["192.0.2.2", "::ffff:192.0.2.2", "127.0.0.1", "127.3.0.7", "FD00:0:0:0::2", "[fd00::2]"],
    ...["fe80::fc:ff:fe00:1%ens3", "192.0.2.3", "fd00::3", "", "localhost"],
  ];
  deepEqual(addresses.map((address) => managementInterface(address, INTERFACES)), [
    ...["ens3", "ens3", "lo", "lo", "ens3", "ens3"],
    ...["ens3", undefined, undefined, undefined, undefined],
  ]);
});
