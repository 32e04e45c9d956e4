import { deepEqual, equal, match, ok } from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { limitsOf, limitWarnings, memlockWarning, readLimits, readMemlock } from "./limits.ts";

const SHIM = fileURLToPath(new URL("../../../bin/heddle-shim", import.meta.url));

Deno.test("readLimits() asks a shell for what Deno cannot read", async () => {
  const { memlockBytes, shmFreeBytes, shmTotalBytes } = await readLimits(SHIM);
  ok((memlockBytes ?? 0) > 0);
  if (shmTotalBytes !== undefined) ok((shmFreeBytes ?? Infinity) <= shmTotalBytes);
});

Deno.test("limitsOf() reads what it knows, and takes nothing for zero", () => {
  deepEqual(limitsOf(["shm 65536 1024", "memlock unlimited"]), {
    shmTotalBytes: 65_536 * 1024,
    shmFreeBytes: 1024 ** 2,
    memlockBytes: Infinity,
  });
  deepEqual(limitsOf(["memlock unknown", "shm - -", "what"]), {});
});

Deno.test("readMemlock() tells what a process may lock, whatever whoever asks may", async () => {
  const child = new Deno.Command("/bin/sh", {
    args: ["-c", "ulimit -l 64; echo set; exec sleep 60"],
    stdout: "piped",
  }).spawn();
  try {
    for await (const _ of child.stdout) break;
    const bytes = await readMemlock(SHIM, child.pid);
    // Whoever may lock what it wants, such as root, may do so whatever its limit.
    ok(bytes === 65_536 || bytes === Infinity, String(bytes));
  } finally {
    child.kill("SIGKILL");
    await child.status;
  }
  equal(await readMemlock(SHIM, 4_194_304), undefined, "no such process");
});

Deno.test("limitWarnings() and memlockWarning() complain of nothing unknown", () => {
  const tight = limitsOf(["shm 65536 65536", "memlock 8192"]);
  const [shm, ...more] = limitWarnings(tight, { gpus: 8 });
  match(shm ?? "", /64 of 64 MiB free.* 1024 MiB free would be enough/);
  equal(more.length, 0);
  deepEqual(limitWarnings(tight, { gpus: 1 }), []);
  deepEqual(limitWarnings({}, { gpus: 8 }), []);
  const words = memlockWarning(tight.memlockBytes, "process") ?? "";
  match(words, /lock 8 MiB.* 16384 MiB would be enough.*LimitMEMLOCK=infinity for the agent/);
  match(memlockWarning(65_536, "systemd") ?? "", /units ask for LimitMEMLOCK=infinity.*a drop-in/);
  equal(memlockWarning(undefined, "process"), undefined);
  const exempt = limitsOf(["memlock 8192", "ipc-lock"]);
  equal(exempt.memlockBytes, Infinity);
  equal(memlockWarning(exempt.memlockBytes, "process"), undefined);
});
