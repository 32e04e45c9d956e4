/** The real program, ended by SIGKILL again and again: it goes on where it was. */
import { deepEqual, ok } from "node:assert/strict";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { delay } from "@heddle/common/task";
import { encodeRequest, lastReport } from "../../core/weights/documents.ts";
import { readJournal, sizeOf } from "../../core/weights/intervals.ts";
import { fakeHub, someBytes } from "./hub_fake.ts";
import { asidePath } from "./transfer/aside.ts";

const LAUNCHER = fileURLToPath(new URL("../../../bin/heddle-fetch", import.meta.url));
const KILLS = 20;
const MIB = 1024 ** 2;
const CHUNK = 8 * MIB;
const BYTES = someBytes(40 * MIB, 5);
const NAME = "model.safetensors";

function start(into: string, hub: string): Deno.ChildProcess {
  const request = encodeRequest({
    verb: "fetch",
    source: "hf://org/name",
    into,
    hub,
    connections: 4,
    chunk_bytes: CHUNK,
    // So slow that all kills come before its end: half of it is there then.
    bytes_per_second: 4 * MIB,
  });
  return new Deno.Command(LAUNCHER, {
    env: {
      HEDDLE_DENO: Deno.execPath(),
      HEDDLE_FETCH_INTO: into,
      HEDDLE_FETCH_REQUEST: request,
    },
    stdin: "null",
    stdout: "piped",
    stderr: "inherit",
  }).spawn();
}

/** Reads what it says to its end; `said` resolves once it has told so many lines. */
function listen(child: Deno.ChildProcess, count: number) {
  const said = Promise.withResolvers<void>();
  const ended = (async () => {
    let text = "";
    for await (const part of child.stdout.pipeThrough(new TextDecoderStream())) {
      text += part;
      if (text.split("\n").length > count) said.resolve();
    }
    said.resolve();
  })();
  return { said: said.promise, ended };
}

/** Bytes on the disk, and those of them that the journal knows. */
async function onDisk(into: string): Promise<{ written: number; noted: number }> {
  const [partial] = [...Deno.readDirSync(into)].filter(({ name }) => name.startsWith(".partial-"));
  const folder = join(into, partial?.name ?? "");
  let part: Uint8Array;
  let journal: string;
  try {
    part = await Deno.readFile(asidePath(folder, NAME, ".part"));
    journal = await Deno.readTextFile(asidePath(folder, NAME, ".journal"));
  } catch {
    return { written: 0, noted: 0 };
  }
  let written = 0;
  for (let at = 0; at < part.length; at++) if (part[at] === BYTES[at]) written++;
  const noted = sizeOf(readJournal(journal.slice(journal.indexOf("\n") + 1), BYTES.length));
  return { written, noted };
}

Deno.test("a fetch that is killed 20 times fetches no more than a chunk twice each time", async () => {
  await using hub = await fakeHub({ "config.json": new TextEncoder().encode("{}"), [NAME]: BYTES });
  const root = await Deno.makeTempDir();
  const into = join(root, "heddle");
  try {
    let before = 0;
    for (let kill = 0; kill < KILLS; kill++) {
      const child = start(into, hub.url);
      // Once it begins to fetch, at any moment of the next 400 ms.
      const { said, ended } = listen(child, 2);
      await said;
      await delay(Math.random() * 400, new AbortController().signal);
      child.kill("SIGKILL");
      await Promise.all([child.status, ended]);
      const { written, noted } = await onDisk(into);
      ok(noted >= before, `${noted} bytes are noted, and ${before} were`);
      ok(written - noted <= CHUNK, `${written - noted} bytes would be fetched twice`);
      before = noted;
    }
    ok(before > 0, "something was fetched before the last kill");
    const child = start(into, hub.url);
    const { stdout } = await child.output();
    const report = lastReport(new TextDecoder().decode(stdout));
    ok(report?.kind === "done", JSON.stringify(report));
    ok(report.received_bytes <= BYTES.length - before + 2, "the rest is all that came");
    deepEqual(await Deno.readFile(join(into, report.folder, NAME)), BYTES);
  } finally {
    await Deno.remove(root, { recursive: true });
  }
});
