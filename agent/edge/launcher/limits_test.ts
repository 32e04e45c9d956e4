import { deepEqual, equal, match, ok } from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { limitsOf, limitWarnings, readLimits } from "./limits.ts";

const SHIM = fileURLToPath(new URL("../../../bin/heddle-shim", import.meta.url));

Deno.test("readLimits() asks a shell for what Deno cannot read", async () => {
  const { memlockBytes, shmFreeBytes, shmTotalBytes } = await readLimits({ shim: SHIM });
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

Deno.test("limitWarnings() complains of what the shard needs, and of nothing unknown", () => {
  const tight = limitsOf(["shm 65536 65536", "memlock 8192"]);
  const [shm, memlock, ...more] = limitWarnings(tight, { gpus: 8, hcas: 8, launcher: "process" });
  match(shm ?? "", /64 of 64 MiB free.* 1024 MiB free would be enough/);
  match(memlock ?? "", /lock 8 MiB.* 16384 MiB would be enough/);
  equal(more.length, 0);
  deepEqual(limitWarnings(tight, { gpus: 1, hcas: 0, launcher: "process" }), []);
  match(
    limitWarnings(tight, { gpus: 8, hcas: 8, launcher: "systemd" })[1] ?? "",
    /units ask for LimitMEMLOCK=infinity: look for a drop-in/,
  );
  const exempt = limitsOf(["memlock 8192", "ipc-lock"]);
  equal(exempt.memlockBytes, Infinity);
  deepEqual(limitWarnings(exempt, { gpus: 8, hcas: 8, launcher: "process" }), []);
  deepEqual(limitWarnings({}, { gpus: 8, hcas: 8, launcher: "process" }), []);
});
