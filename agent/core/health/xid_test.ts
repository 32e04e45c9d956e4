import { deepEqual, equal, ok } from "node:assert/strict";
import fc from "fast-check";
import { parseXid, xidLine } from "./xid.ts";

const FIXTURES = new URL("../../../tests/fixtures/hardware/kmsg/", import.meta.url);

Deno.test("parseXid() reads every shape of line in the kernel log", () => {
  const lines = Deno.readTextFileSync(new URL("xid-lines.txt", FIXTURES)).split("\n");
  const events = lines.flatMap((line) => parseXid(line) ?? []);
  deepEqual(events.map((each) => `${each.pciAddress} ${each.xid} ${each.verdict}`), [
    "0000:9b:00 119 out",
    "0000:05:00 79 out",
    "0000:02:00 79 out",
    "0000:03:00 14 ignore",
    "0018:01:00 149 nvlink",
    "0000:01:00 144 ignore",
  ]);
  equal(events[2]?.text, "GPU has fallen off the bus.");
});

Deno.test("parseXid() finds a GPU that fell off without an Xid, and nothing elsewhere", () => {
  deepEqual(
    parseXid(
      "NVRM: The NVIDIA GPU 0000:b3:00.0 (PCI ID: 10de:2330) installed in this system has fallen off the bus and is not responding to commands.",
    ),
    { pciAddress: "0000:b3:00", xid: undefined, verdict: "out", text: "fallen off the bus" },
  );
  for (const file of ["mlx5-access-reg-einval.txt", "dmesg-denied.stderr.txt"]) {
    equal(parseXid(Deno.readTextFileSync(new URL(file, FIXTURES))), undefined);
  }
});

Deno.test("parseXid() leaves the application's faults to the application", () => {
  const verdict = (xid: number, text = ""): string | undefined =>
    parseXid(`NVRM: Xid (PCI:0000:05:00): ${xid}, ${text}`)?.verdict;
  deepEqual([13, 31, 43, 45, 94, 63, 74, 48, 64, 95].map((xid) => verdict(xid)), [
    ...["ignore", "ignore", "ignore", "ignore", "warn", "warn", "nvlink", "out", "out", "out"],
  ]);
  equal(
    verdict(154, "GPU recovery action changed from 0x0 (None) to 0x2 (Node Reboot Required)"),
    "out",
  );
  equal(
    verdict(154, "GPU recovery action changed from 0x1 (GPU Reset Required) to 0x0 (None)"),
    "ignore",
  );
});

Deno.test("parseXid() never throws, and every GPU that it names stands in the line", () => {
  const lines = Deno.readTextFileSync(new URL("xid-lines.txt", FIXTURES)).split("\n");
  fc.assert(
    fc.property(
      fc.constantFrom(...lines),
      fc.nat(200),
      fc.string({ maxLength: 6 }),
      (line, at, piece) => {
        const text = line.slice(0, at) + piece + line.slice(at + 1);
        const event = parseXid(text);
        if (event === undefined) return;
        const [, bus = "", device = ""] = event.pciAddress.split(":");
        equal(text.toLowerCase().includes(`${bus}:${device}`), true);
      },
    ),
    { numRuns: 10_000 },
  );
});

Deno.test("xidLine() writes what parseXid() reads", () => {
  for (const line of Deno.readTextFileSync(new URL("xid-lines.txt", FIXTURES)).split("\n")) {
    const event = parseXid(line);
    if (event !== undefined) deepEqual(parseXid(xidLine(event)), event);
  }
  const fallen = parseXid("NVRM: The NVIDIA GPU 0000:b3:00.0 has fallen off the bus");
  ok(fallen !== undefined);
  deepEqual(parseXid(xidLine(fallen)), fallen);
});
