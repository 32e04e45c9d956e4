import { deepEqual, equal, notEqual } from "node:assert/strict";
import { createHash } from "node:crypto";
import { dirname, join } from "node:path";
import fc from "fast-check";
import { decodeRequest, encodeRequest } from "../../../core/weights/documents.ts";
import { journalLine } from "../../../core/weights/intervals.ts";
import {
  folderName,
  isOwnPath,
  LOCK_FILE,
  MANIFEST_FILE,
  partialName,
} from "../../../core/weights/own_name.ts";
import { fetchWeights } from "../fetch_weights.ts";
import { COMMIT, fakeHub, someBytes } from "../hub_fake.ts";
import { Progress } from "../progress.ts";
import { asidePath } from "./aside.ts";

const WANT = { source: "hf://org/name", include: ["*"], exclude: [] };
/** Above what is small, so that there is a journal; all alike, so that no size tells them apart. */
const SIZE = 70_000;
const SMALL = 300;

const segment = fc.constantFrom(
  "x",
  "x.part",
  "x.journal",
  "x.part.part",
  "x.part.journal",
  ".lock",
  ".heddle-aside",
  ".heddle-aside.new",
  ".heddle-weights.json",
  ".partial-x",
  "é ü%2F",
  "n".repeat(250),
);
/** Paths as a repository can have them: none is a file and a folder. */
const paths = fc.uniqueArray(
  fc.array(segment, { minLength: 1, maxLength: 3 }).map((parts) => parts.join("/")),
  { minLength: 1, maxLength: 9 },
).map((all) => all.filter((path) => !all.some((other) => path.startsWith(`${other}/`))));

async function filesBelow(folder: string, under = ""): Promise<readonly string[]> {
  const found: string[] = [];
  for await (const { name, isDirectory } of Deno.readDir(join(folder, under))) {
    const path = under === "" ? name : `${under}/${name}`;
    if (isDirectory) found.push(...await filesBelow(folder, path));
    else found.push(path);
  }
  return found.sort();
}

/** What an earlier release left: half of each file beside it, as far as its names let it. */
async function leaveFormer(folder: string, files: ReadonlyMap<string, Uint8Array>): Promise<void> {
  await Deno.writeTextFile(join(folder, LOCK_FILE), "");
  for (const [path, bytes] of files) {
    if (isOwnPath(path)) continue;
    const at = join(folder, path);
    try {
      await Deno.mkdir(dirname(at), { recursive: true });
      await Deno.writeFile(`${at}.part`, bytes);
      await Deno.writeTextFile(`${at}.journal`, `heddle-part 1 ${bytes.length} x\n`);
    } catch {
      // A file or a folder of that name is there: it could not have gone on either.
    }
  }
}

Deno.test("files come whole whatever they are called, also after an earlier release", async () => {
  await fc.assert(
    fc.asyncProperty(paths, fc.boolean(), fc.boolean(), async (names, former, small) => {
      const files = new Map(
        ["model.safetensors", ...names].map((path, index) => [
          path,
          someBytes(small && index % 2 === 1 ? SMALL : SIZE, index + 1),
        ]),
      );
      const root = await Deno.makeTempDir();
      const into = join(root, "heddle");
      await using hub = await fakeHub(Object.fromEntries(files));
      try {
        const partial = join(into, partialName(folderName(WANT, COMMIT)));
        await Deno.mkdir(partial, { recursive: true });
        if (former) await leaveFormer(partial, files);
        const request = decodeRequest(encodeRequest({
          verb: "fetch",
          ...WANT,
          into,
          hub: hub.url,
          connections: 3,
          chunk_bytes: 40_000,
          retry_ms: 1,
        }));
        using progress = new Progress(() => {});
        const { folder } = await fetchWeights(request, progress, new AbortController().signal);
        const wanted = [...files].filter(([path]) => !isOwnPath(path));
        for (const [path, bytes] of wanted) {
          deepEqual(await Deno.readFile(join(into, folder, path)), bytes, path);
        }
        const there = await filesBelow(join(into, folder));
        deepEqual(there, [MANIFEST_FILE, ...wanted.map(([path]) => path)].sort());
      } finally {
        await Deno.remove(root, { recursive: true });
      }
    }),
    { numRuns: 40 },
  );
});

Deno.test("what an earlier release had of a file is not fetched again", async () => {
  const bytes = someBytes(4 * SIZE);
  const root = await Deno.makeTempDir();
  const into = join(root, "heddle");
  await using hub = await fakeHub({ "a/m.safetensors": bytes });
  try {
    const partial = join(into, partialName(folderName(WANT, COMMIT)));
    const at = join(partial, "a/m.safetensors");
    await Deno.mkdir(dirname(at), { recursive: true });
    await Deno.writeFile(`${at}.part`, bytes.slice(0, 3 * SIZE));
    const hash = createHash("sha256").update(bytes).digest("hex");
    await Deno.writeTextFile(
      `${at}.journal`,
      `heddle-part 1 ${bytes.length} ${hash}\n${journalLine({ start: 0, end: 3 * SIZE })}`,
    );
    const request = decodeRequest(encodeRequest({ verb: "fetch", ...WANT, into, hub: hub.url }));
    using progress = new Progress(() => {});
    const done = await fetchWeights(request, progress, new AbortController().signal);
    equal(done.received_bytes, SIZE);
    deepEqual(await Deno.readFile(join(into, done.folder, "a/m.safetensors")), bytes);
  } finally {
    await Deno.remove(root, { recursive: true });
  }
});

Deno.test("asidePath() gives no two files one place, and no file the place of another", () => {
  fc.assert(
    fc.property(segment, segment, (a, b) => {
      for (const what of [".part", ".journal"] as const) {
        const place = asidePath("/f", a, what);
        equal(isOwnPath(place.slice("/f/".length)), true);
        if (a !== b) notEqual(place, asidePath("/f", b, what));
      }
      notEqual(asidePath("/f", a, ".part"), asidePath("/f", b, ".journal"));
    }),
  );
});
