import { deepEqual, equal, ok } from "node:assert/strict";
import { join } from "node:path";
import { logger, startLogging } from "@heddle/common/log";
import { boundLog, followLines, tailLines } from "./log_file.ts";
import { OwnLog } from "./own_log.ts";

async function inFolder(work: (file: string) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir();
  try {
    await work(join(folder, "log"));
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

function append(file: string, text: string): Promise<void> {
  return Deno.writeTextFile(file, text, { append: true });
}

Deno.test("tailLines() gives the last lines, whatever there is", () =>
  inFolder(async (file) => {
    deepEqual(await tailLines(file, 5), [], "no file");
    await append(file, "");
    deepEqual(await tailLines(file, 5), []);
    await append(file, "a\nb\r\n\nc");
    deepEqual(await tailLines(file, 2), ["", "c"]);
    deepEqual(await tailLines(file, 9), ["a", "b", "", "c"]);
    deepEqual(await tailLines(file, 0), []);
  }));

Deno.test("tailLines() shows an endless line in pieces", () =>
  inFolder(async (file) => {
    await append(file, "x".repeat(40_000));
    deepEqual((await tailLines(file, 9)).map(({ length }) => length), [16_384, 16_384, 7_232]);
  }));

Deno.test("followLines() goes on from the tail, over a cut, and splits no character", () =>
  inFolder(async (file) => {
    await append(file, "old\nlast\n");
    const stop = new AbortController();
    const lines = followLines(file, 1, stop.signal);
    const next = async () => (await lines.next()).value;
    deepEqual(await next(), ["last"]);
    const euro = new TextEncoder().encode("5 €\n");
    await Deno.writeFile(file, euro.subarray(0, 3), { append: true });
    const pending = next();
    await Deno.writeFile(file, euro.subarray(3), { append: true });
    deepEqual(await pending, ["5 €"]);
    await Deno.truncate(file, 0);
    await append(file, "new\n");
    deepEqual(await next(), ["new"]);
    stop.abort();
    equal((await lines.next()).done, true);
  }));

Deno.test("boundLog() cuts what an engine floods, and keeps the end of it", () =>
  inFolder(async (file) => {
    const engine = await Deno.open(file, { append: true, create: true });
    const line = new TextEncoder().encode(`${"x".repeat(99)}\n`);
    for (let count = 0; count < 2_000; count++) await engine.write(line);
    equal(await boundLog(file, { bytesMax: 1_000_000 }), false);
    equal(await boundLog(file, { bytesMax: 100_000 }), true);
    equal((await Deno.stat(file)).size, 0);
    ok((await Deno.stat(`${file}.old`)).size <= 100_000);
    await engine.write(new TextEncoder().encode("still here\n"));
    engine.close();
    equal(await Deno.readTextFile(file), "still here\n");
    const tail = await tailLines(file, 3);
    deepEqual(tail.map(({ length }) => length), [99, 99, 10]);
  }));

Deno.test("boundLog() loses nothing of what is printed while it cuts", () =>
  inFolder(async (file) => {
    await Deno.writeTextFile(file, "x\n".repeat(100_000));
    const engine = await Deno.open(file, { append: true });
    const words = ["one", "two", "three"];
    const seen: string[] = [];
    const beforeCut = async () => {
      seen.push((await tailLines(file, 1))[0] ?? "");
      const word = words.shift();
      if (word !== undefined) await engine.write(new TextEncoder().encode(`${word}\n`));
    };
    equal(await boundLog(file, { bytesMax: 1_000, beforeCut }), true);
    deepEqual(seen, ["x", "one", "two", "three"]);
    deepEqual(await tailLines(file, 4), ["x", "one", "two", "three"]);
    engine.close();
  }));

Deno.test("boundLog() cuts what never stops growing", () =>
  inFolder(async (file) => {
    await Deno.writeTextFile(file, "x\n".repeat(1_000));
    let rounds = 0;
    const beforeCut = async () => {
      rounds += 1;
      await Deno.writeTextFile(file, "more\n", { append: true });
    };
    equal(await boundLog(file, { bytesMax: 100, beforeCut }), true);
    equal(rounds, 8);
    equal((await Deno.stat(file)).size, 0);
  }));

Deno.test("OwnLog keeps what the agent logs, without secrets, and follows it", async () => {
  await startLogging({ format: "text", level: "info", write: () => {} });
  using own = new OwnLog();
  const log = logger("agent", "test");
  log.info("one", { key: "sk-heddle-replica-secret" });
  log.info("two");
  equal(own.tail(1).length, 1);
  ok(!own.tail(9).join().includes("secret"));
  const stop = new AbortController();
  const lines = own.follow(1, stop.signal);
  ok((await lines.next()).value?.[0]?.endsWith("two"));
  const pending = lines.next();
  log.info("three");
  ok((await pending).value?.[0]?.endsWith("three"));
  stop.abort();
  equal((await lines.next()).done, true);
});
