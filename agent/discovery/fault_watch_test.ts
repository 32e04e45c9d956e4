import { deepEqual, equal } from "node:assert/strict";
import { FaultWatch } from "./fault_watch.ts";

async function eventsOf(text: string): Promise<string[]> {
  const path = await Deno.makeTempFile();
  try {
    await Deno.writeTextFile(path, text);
    const watch = new FaultWatch(path);
    await watch.start();
    return [...watch.events()].flatMap(([address, events]) =>
      events.map((event) => `${address} ${event.xid} ${event.verdict}`)
    );
  } finally {
    await Deno.remove(path);
  }
}

Deno.test("FaultWatch keeps what the kernel logged of each GPU", async () => {
  deepEqual(
    await eventsOf(
      "4,1,0,-;NVRM: Xid (PCI:0000:05:00): 31, pid=4, MMU Fault\n" +
        "4,2,0,-;NVRM: Xid (PCI:0000:05:00): 79, pid=4, GPU has fallen off the bus.\n" +
        "6,3,0,-;eth0: link up\n",
    ),
    ["0000:05:00 79 out"],
  );
});

Deno.test("FaultWatch is bounded, and keeps a grave fault after many light ones", async () => {
  const light = "NVRM: Xid (PCI:0000:05:00): 94, contained\n".repeat(100);
  const events = await eventsOf(`${light}NVRM: Xid (PCI:0000:05:00): 95, uncontained\n`);
  equal(events.length, 32);
  equal(events.at(-1), "0000:05:00 95 out");
});

Deno.test("FaultWatch goes without a log that is not there", async () => {
  const watch = new FaultWatch("/nowhere/kmsg");
  await watch.start();
  equal(watch.events().size, 0);
  await new FaultWatch(undefined).start();
});
