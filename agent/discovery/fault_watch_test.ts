import { deepEqual, equal } from "node:assert/strict";
import { openBootMemory } from "../edge/boot_memory.ts";
import { eventually } from "../eventually_fake.ts";
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
  const light = Array.from(
    { length: 100 },
    (_, index) => `NVRM: Xid (PCI:0000:05:00): 94, contained ${index}\n`,
  ).join("");
  const events = await eventsOf(`${light}NVRM: Xid (PCI:0000:05:00): 95, uncontained\n`);
  equal(events.length, 32);
  equal(events.at(-1), "0000:05:00 95 out");
});

Deno.test("FaultWatch counts once what the kernel says again and again", async () => {
  const events = await eventsOf("NVRM: Xid (PCI:0000:05:00): 94, contained\n".repeat(100));
  deepEqual(events, ["0000:05:00 94 warn"]);
});

Deno.test("FaultWatch still knows a fault that the log has lost, until the machine is restarted", async () => {
  const folder = await Deno.makeTempDir();
  try {
    const kmsg = `${folder}/kmsg`;
    const watch = async (bootId: string) => {
      const memory = await openBootMemory(`${folder}/boot.json`, bootId);
      const watch = new FaultWatch(kmsg, { memory });
      await watch.start();
      await memory.written();
      return [...watch.events().values()].flat().map(({ xid, verdict }) => `${xid} ${verdict}`);
    };
    await Deno.writeTextFile(kmsg, "NVRM: Xid (PCI:0000:05:00): 79, fallen off the bus\n");
    deepEqual(await watch("one"), ["79 out"]);
    await Deno.writeTextFile(kmsg, "NVRM: Xid (PCI:0000:05:00): 94, contained\n");
    deepEqual(await watch("one"), ["79 out", "94 warn"]);
    await Deno.writeTextFile(kmsg, "");
    deepEqual(await watch("one"), ["79 out", "94 warn"]);
    deepEqual(await watch("two"), []);
    await Deno.writeTextFile(`${folder}/boot.json`, "{");
    deepEqual(await watch("one"), [], "a damaged file is no reason not to start");
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("FaultWatch tells what was logged of late, also what is an application's fault", async () => {
  const folder = await Deno.makeTempDir();
  try {
    const kmsg = `${folder}/kmsg`;
    // As /dev/kmsg does, a pipe gives what is written later too.
    const { success } = await new Deno.Command("mkfifo", { args: [kmsg] }).output();
    equal(success, true);
    let now = 1_000;
    const watch = new FaultWatch(kmsg, { now: () => now });
    const started = watch.start();
    const writer = await Deno.open(kmsg, { write: true });
    const write = (text: string) => writer.write(new TextEncoder().encode(text));
    await write("NVRM: Xid (PCI:0000:05:00): 31, pid=1, before\n");
    await started;
    now = 2_000;
    await write("NVRM: Xid (PCI:0000:05:00): 31, pid=7, MMU Fault\n");
    await eventually("it is seen", () => watch.since(2_000).length === 1);
    deepEqual(watch.since(0).map(({ text }) => text), ["pid=7, MMU Fault"]);
    deepEqual(watch.since(2_001), []);
    writer.close();
    await watch.ended();
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});

Deno.test("FaultWatch goes without a log that is not there", async () => {
  const watch = new FaultWatch("/nowhere/kmsg");
  await watch.start();
  equal(watch.events().size, 0);
  await new FaultWatch(undefined).start();
});
