import { deepEqual, equal } from "node:assert/strict";
import { openSdNotify } from "./sd_notify.ts";

/** systemd's end: what it is told, in order. */
async function withSystemd(
  use: (place: { folder: string; socket: string; next: () => Promise<string> }) => Promise<void>,
): Promise<void> {
  const folder = await Deno.makeTempDir();
  const peer = Deno.listenDatagram({ transport: "unixpacket", path: `${folder}/systemd` });
  try {
    await use({
      folder,
      socket: `${folder}/systemd`,
      next: async () => new TextDecoder().decode((await peer.receive())[0]),
    });
  } finally {
    peer.close();
    await Deno.remove(folder, { recursive: true });
  }
}

Deno.test("openSdNotify() says ready, then regularly that it lives, and that it ends", async () => {
  await withSystemd(async ({ folder, socket, next }) => {
    // What a program that was killed has left.
    await Deno.writeTextFile(`${folder}/notify.sock`, "");
    const systemd = openSdNotify({ folder, socket, watchdog: "20000" });
    // At once, while the first is still being sent.
    systemd.ready();
    equal(await next(), "EXTEND_TIMEOUT_USEC=20000000");
    deepEqual([await next(), await next(), await next()], ["READY=1", "WATCHDOG=1", "WATCHDOG=1"]);
    systemd.stopping();
    while (await next() !== "STOPPING=1");
    systemd.close();
    deepEqual(await Array.fromAsync(Deno.readDir(folder), ({ name }) => name), ["systemd"]);
  });
});

Deno.test("openSdNotify() does nothing where nobody asks, and survives what it cannot bind", async () => {
  const quiet = openSdNotify({ folder: "/nonexistent", socket: undefined, watchdog: undefined });
  quiet.ready();
  quiet.close();
  await withSystemd(async ({ socket }) => {
    const broken = openSdNotify({ folder: "/nonexistent/folder", socket, watchdog: "20000" });
    broken.ready();
    broken.close();
    await Promise.resolve();
  });
});
