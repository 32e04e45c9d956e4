import { equal, match, notEqual, ok } from "node:assert/strict";
import { Mask } from "./mask.ts";

Deno.test("Mask replaces identifiers by stand-ins of their shape, the same every time", () => {
  const mask = new Mask();
  const uuid = "GPU-e0dab35e-30b8-fb22-a731-73baa12dab68";
  const first = mask.text(`0, ${uuid}, NVIDIA H100 80GB HBM3`);
  match(first, /^0, GPU-[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}, NVIDIA H100 80GB HBM3$/);
  ok(!first.includes("e0dab35e"));
  equal(
    mask.text(`0, ${uuid.toUpperCase()}`).split(", ")[1]?.slice(4),
    first.split(", ")[1]?.slice(4),
  );
  notEqual(mask.text("GPU-fe975310-9e12-d3b3-4ff5-aa0a2b49c8a9"), mask.text(uuid));
  equal(mask.text(mask.text(uuid)), mask.text(uuid));
});

Deno.test("Mask keeps what discovery asks of GIDs, addresses and zeros", () => {
  const mask = new Mask();
  match(
    mask.text("0000:0000:0000:0000:0000:ffff:0a01:0248"),
    /^0000:0000:0000:0000:0000:ffff:c000:02[0-9a-f]{2}$/,
  );
  match(mask.text("fe80:0000:0000:0000:a288:c2ff:fe00:03ec"), /^fe80:0000:0000:0000:0000:/);
  notEqual(mask.text("fc4c:ea03:00aa:0230"), "fc4c:ea03:00aa:0230");
  for (
    const same of [
      "00000000-0000-0000-0000-000000000000",
      "0000:0000:0000:0000:0000:0000:0000:0000",
      "0000:0000:0000:0000",
      "00000000:18:00.0, 580.65.06, 0x233010DE",
      "400 Gb/sec (4X NDR)",
      "0-55,112-167",
    ]
  ) equal(mask.text(same), same);
});

Deno.test("Mask hides process names, serial numbers and addresses", () => {
  const mask = new Mask();
  const masked = mask.text("GPU Board Serial Number: 1650000000002, /home/ada/run.py at 10.1.2.3");
  for (const secret of ["1650000000002", "ada", "10.1.2.3"]) ok(!masked.includes(secret), secret);
});
