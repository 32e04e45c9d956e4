import { deepEqual, equal, rejects } from "node:assert/strict";
import { type Spool, SpoolError, SpoolRoom } from "./spool.ts";

const KIB = 1_024;

async function inFolder(test: (folder: string) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir();
  try {
    await test(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

/** A body of `kib` KiB, each of them of one byte's value. */
async function filled(room: SpoolRoom, kib: number): Promise<Spool> {
  const spool = room.open();
  for (let n = 0; n < kib; n++) await spool.write(new Uint8Array(KIB).fill(n % 251));
  return spool;
}

async function bytesOf(spool: Spool, start: number, end: number): Promise<Uint8Array> {
  const parts: Uint8Array[] = [];
  for await (const part of spool.read({ start, end })) parts.push(part);
  return new Uint8Array(await new Blob(parts.map((part) => part.slice())).arrayBuffer());
}

Deno.test("Spool gives back any range, from memory and from its file", () =>
  inFolder(async (folder) => {
    const room = new SpoolRoom({ folder: `${folder}/uploads`, bytesMax: 10_000 * KIB });
    using spool = await filled(room, 600);
    equal(spool.length, 600 * KIB);
    equal(room.bytes, (600 - 256) * KIB);
    const whole = Uint8Array.from({ length: 600 * KIB }, (_, at) => Math.floor(at / KIB) % 251);
    for (
      const [start, end] of [
        [0, 600 * KIB],
        [5, 5],
        [255 * KIB, 257 * KIB],
        [100, 200],
        [400 * KIB + 3, 400 * KIB + 9],
        [599 * KIB, 600 * KIB],
      ] as const
    ) deepEqual(await bytesOf(spool, start, end), whole.slice(start, end), `${start}-${end}`);
    deepEqual([...Deno.readDirSync(`${folder}/uploads`)], [], "its file has no name");
  }));

Deno.test("Spool can be read again while an earlier reader is still at it", () =>
  inFolder(async (folder) => {
    using spool = await filled(new SpoolRoom({ folder, bytesMax: 10_000 * KIB }), 700);
    const first = spool.read({ start: 0, end: 700 * KIB });
    for (let n = 0; n < 258; n++) await first.next();
    const [, again] = await Promise.all([first.next(), bytesOf(spool, 0, 700 * KIB), first.next()]);
    deepEqual(
      again,
      Uint8Array.from({ length: 700 * KIB }, (_, at) => Math.floor(at / KIB) % 251),
    );
    await first.return(undefined);
  }));

Deno.test("SpoolRoom bounds what all uploads hold, and has room again once they are gone", () =>
  inFolder(async (folder) => {
    const room = new SpoolRoom({ folder, bytesMax: 100 * KIB });
    using small = await filled(room, 200);
    equal(room.bytes, 0, "small ones take no disk");
    using large = await filled(room, 356);
    await rejects(large.write(new Uint8Array(1)), SpoolError);
    await rejects(filled(room, 257), SpoolError);
    large[Symbol.dispose]();
    using next = await filled(room, 300);
    equal(next.length + small.length, 500 * KIB);
  }));

Deno.test("SpoolRoom says when it cannot make a file", () =>
  inFolder(async (folder) => {
    await Deno.writeTextFile(`${folder}/file`, "");
    const room = new SpoolRoom({ folder: `${folder}/file/x`, bytesMax: 10_000 * KIB });
    await rejects(filled(room, 257), SpoolError);
  }));
