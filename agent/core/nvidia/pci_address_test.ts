import { deepEqual, equal } from "node:assert/strict";
import { pciAddress, pciDeviceId } from "./pci_address.ts";

Deno.test("pciAddress() reads every spelling as one", () => {
  deepEqual(
    [
      "00000000:3D:00.0",
      "0000:3d:00.0",
      "NVRM: Xid (PCI:0000:3d:00): 79, GPU has fallen off the bus.",
      "NVRM: Xid (0000:3d:00): 14, Channel 00000001",
      "Unable to determine the device handle for GPU0000:3D:00.0: Unknown Error",
    ].map(pciAddress),
    Array(5).fill("0000:3d:00"),
  );
  deepEqual(["000029CE:00:00.0", "0000000F:01:00.0", "00010000:01:00.0"].map(pciAddress), [
    "29ce:00:00",
    "000f:01:00",
    "10000:01:00",
  ]);
  deepEqual(
    ["", "[N/A]", "3d:00.0", "12:34:56:78:9a:bc"].map(pciAddress),
    Array(4).fill(undefined),
  );
});

Deno.test("pciDeviceId() takes the device out of device and vendor", () => {
  equal(pciDeviceId("0x233010DE"), "2330");
  equal(pciDeviceId("0x20B210DE"), "20b2");
  equal(pciDeviceId("0x10102330"), undefined);
  equal(pciDeviceId("[N/A]"), undefined);
});
