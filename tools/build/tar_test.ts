import { deepEqual, equal, throws } from "node:assert/strict";
import { tarOf } from "./tar.ts";

Deno.test("tarOf() makes what tar unpacks: bytes, modes and folders, and always the same", async () => {
  const folder = await Deno.makeTempDir();
  try {
    const files = [
      { path: "bin/run", mode: 0o755, bytes: new TextEncoder().encode("#!/bin/sh\necho ran\n") },
      { path: "empty", mode: 0o644, bytes: new Uint8Array() },
      { path: "lib/block", mode: 0o644, bytes: new Uint8Array(512).fill(7) },
      { path: "lib/more", mode: 0o600, bytes: new Uint8Array(513).fill(8) },
    ];
    const archive = tarOf(files);
    deepEqual(archive, tarOf(files));
    await Deno.writeFile(`${folder}/a.tar`, archive);
    const args = ["-xf", `${folder}/a.tar`, "-C", folder];
    const { code, stderr } = await new Deno.Command("tar", { args }).output();
    equal(new TextDecoder().decode(stderr), "");
    equal(code, 0);
    for (const { path, mode, bytes } of files) {
      deepEqual(await Deno.readFile(`${folder}/${path}`), bytes, path);
      equal(((await Deno.stat(`${folder}/${path}`)).mode ?? 0) & 0o777, mode, path);
    }
    throws(() => tarOf([{ path: "x".repeat(101), mode: 0, bytes: new Uint8Array() }]), RangeError);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
