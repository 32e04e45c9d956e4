/**
 * Weights go from a real node's disk: those that nobody asks for when room is short, and those that
 * an operator names. What somebody else put there stays, whoever asks for it.
 */
import { deepEqual, equal, match } from "node:assert/strict";
import { join } from "node:path";
import { fakeHub, someBytes } from "../../agent/edge/fetch/hub_fake.ts";
import { clearAway, ctlOf, type Laid, layOut, start, until } from "./weights_site.ts";

const NAMES = ["kept", "named", "unused"];

/** No node of the test can run them: they are fetched because they are asked for. */
function catalogOf(names: readonly string[]): string {
  return "models:\n" +
    names.map((name) =>
      `  - name: ${name}\n    source: hf://org/name/${name}.gguf\n    profiles:\n` +
      "      - { name: p, engine: llamacpp, args: [-c, 1024] }\n"
    ).join("");
}

/** Called as Heddle calls its own folders, and without its list of what they hold. */
const FOREIGN_FOLDER = "somebodys-model-0123456789abcd@v1";

async function putForeign({ models }: Laid): Promise<readonly string[]> {
  const folder = join(models, "heddle", FOREIGN_FOLDER);
  await Deno.mkdir(folder, { recursive: true });
  const files = [
    join(folder, "model.gguf"),
    join(models, "heddle", "notes.txt"),
    join(models, "own.gguf"),
  ];
  for (const file of files) await Deno.writeFile(file, someBytes(4_096));
  return files;
}

interface Fetched {
  readonly models: readonly string[];
  readonly weights: { readonly folder: string; readonly path: string; readonly state: string };
}

async function listed(place: Laid): Promise<readonly Fetched[]> {
  const text = await ctlOf(place, "weights", "-o", "json");
  return text.startsWith("[") ? JSON.parse(text) : [];
}

/** Bytes of each file that is there, by path. */
async function sizesOf(files: readonly string[]): Promise<readonly number[]> {
  return await Promise.all(files.map(async (file) => (await Deno.stat(file)).size));
}

async function isThere(path: string): Promise<boolean> {
  return await Deno.stat(path).then(() => true, () => false);
}

Deno.test("a full node loses the weights that nobody asks for, and no file of anybody else", async () => {
  await using hub = await fakeHub(
    Object.fromEntries(NAMES.map((name, index) => [`${name}.gguf`, someBytes(100_000, index + 1)])),
  );
  const place = await layOut({
    hub: hub.url,
    catalog: catalogOf(NAMES),
    // No disk has so much room: whatever may go has to go.
    control: ["weights: { free_below: 1000000TiB }"],
  });
  const running = place.programs.map(start);
  const seen = () => ctlOf(place, "weights", "-o", "json");
  try {
    const foreign = await putForeign(place);
    await until("the node is there", async () => {
      return /n1/.test(await ctlOf(place, "nodes"));
    }, seen);
    // What is not Heddle's the node refuses, even to an operator. It has told of nothing yet, so that
    // ctl hands on every name.
    const foreignNames = [FOREIGN_FOLDER, "notes.txt", "../own.gguf"];
    for (const name of foreignNames) {
      match(await ctlOf(place, "weights", "remove", "n1", name, "--yes"), /not_ours/);
    }
    for (const name of NAMES) await ctlOf(place, "weights", "prefetch", name, "--nodes", "n1");
    await until("all weights are fetched", async () => {
      const all = await listed(place);
      return all.length === NAMES.length && all.every(({ weights }) => weights.state === "ready");
    }, seen);
    const pathOf = new Map(
      (await listed(place)).map(({ models: [name = ""], weights }) => [name, weights]),
    );
    const [kept, named, unused] = NAMES.map((name) => pathOf.get(name));
    deepEqual(await sizesOf([kept?.path ?? "", unused?.path ?? ""]), [100_000, 100_000]);

    // Where there is a list, a name that is not on it does not even reach the node.
    for (const name of foreignNames) {
      match(await ctlOf(place, "weights", "remove", "n1", name, "--yes"), /n1 has fetched no/);
    }

    // What an operator names goes at once, and its model would fetch it again.
    await ctlOf(place, "weights", "remove", "n1", named?.folder ?? "", "--yes");
    equal(await isThere(named?.path ?? ""), false);
    equal(await isThere(unused?.path ?? ""), true);

    // What no model asks for any more goes by itself once it has been so for a minute.
    await Deno.writeTextFile(place.catalog, catalogOf(["kept", "named"]));
    await until(
      "what nobody asks for is gone",
      async () => !await isThere(unused?.path ?? ""),
      seen,
    );
    const audit = () => ctlOf(place, "audit");
    await until(
      "it is in the audit trail",
      async () => /control\tremove weights\t.*unused.*disk_pressure/.test(await audit()),
      audit,
    );
    deepEqual(await sizesOf([kept?.path ?? "", ...foreign]), [100_000, 4_096, 4_096, 4_096]);
  } finally {
    await clearAway(place, running);
  }
});
