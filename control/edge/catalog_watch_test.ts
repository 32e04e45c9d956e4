import { deepEqual, equal, match } from "node:assert/strict";
import { startLogging } from "@heddle/common/log";
import type { Catalog } from "../core/catalog.ts";
import { EMPTY_CATALOG } from "../core/catalog.ts";
import type { CatalogApplied } from "../core/event.ts";
import type { CatalogState } from "../core/world.ts";
import type { CatalogVerdict } from "../core/catalog/judge_catalog.ts";
import { type CatalogFilePast, type CatalogFileState, CatalogWatch } from "./catalog_watch.ts";
import { catalogHash } from "./store/catalog_hash.ts";

const ONE = "models:\n  - {name: a, source: s, profiles: [{name: p, engine: sim}]}\n";
const TWO = `${ONE}  - {name: b, source: s, profiles: [{name: p, engine: sim}]}\n`;

/** A folder with a catalog file, and a watch whose loop applies what it is given. */
async function bench(
  start: CatalogState = { catalog: EMPTY_CATALOG, text: "", revision: 0 },
  past: CatalogFilePast = { seen: undefined, applied: new Set() },
) {
  const folder = await Deno.makeTempDir();
  const file = `${folder}/catalog.yaml`;
  const lines: string[] = [];
  await startLogging({ format: "text", level: "info", write: (line) => lines.push(line) });
  const states: CatalogFileState[] = [];
  const remembered: string[] = [];
  let current = start;
  let verdict: CatalogVerdict = { kind: "apply" };
  let wanted: { done: () => boolean; resolve: () => void } | undefined;
  const watch = new CatalogWatch({
    file,
    past,
    loop: {
      dispatch(event: CatalogApplied) {
        current = event.catalog;
        return Promise.resolve();
      },
    },
    current: () => current,
    judge: (_catalog: Catalog) => verdict,
    onState(state) {
      states.push(state);
      if (wanted?.done() === true) wanted.resolve();
    },
    remember(hash) {
      remembered.push(hash);
      return Promise.resolve();
    },
  });
  return {
    folder,
    file,
    lines,
    states,
    remembered,
    watch,
    /** What an operator applies. */
    apply(text: string) {
      current = { ...current, text, revision: current.revision + 1 };
      return watch.supersede();
    },
    current: () => current,
    judgeBy: (next: CatalogVerdict) => void (verdict = next),
    /** Resolves at the first look after which `text` is what is acted on. */
    applied: (text: string) =>
      new Promise<void>((resolve) => wanted = { done: () => current.text === text, resolve }),
    async write(text: string) {
      await Deno.writeTextFile(file, text);
      await watch.check();
    },
    [Symbol.asyncDispose]: () => Deno.remove(folder, { recursive: true }),
  };
}

Deno.test("CatalogWatch applies a valid text once, with the next revision", async () => {
  await using made = await bench();
  await made.write(ONE);
  await made.watch.check();
  deepEqual(made.current().catalog.models.map(({ name }) => name), ["a"]);
  deepEqual([made.current().text, made.current().revision], [ONE, 1]);
  await made.write(TWO);
  equal(made.current().revision, 2);
  deepEqual(made.states, ["applied", "applied", "applied"]);
  equal(made.lines.filter((line) => line.includes("Catalog applied")).length, 2);
});

Deno.test("CatalogWatch keeps the old catalog when the new one is invalid, and says where it is", async () => {
  await using made = await bench();
  await made.write(ONE);
  await made.write("models:\n  - {name: a, source: s, profils: []}\n");
  await made.watch.check();
  equal(made.current().text, ONE);
  deepEqual(made.states, ["applied", "invalid", "invalid"]);
  const said = made.lines.filter((line) => line.includes("invalid"));
  equal(said.length, 1, "said once, not at every look");
  match(said.join(""), /catalog\.yaml:2:26: models\[0\]\.profils: unknown key/);
  equal(made.watch.status.file, made.file);
  match(made.watch.status.detail, /catalog\.yaml:2:26: models\[0\]\.profils: unknown key/);
  await made.write(ONE);
  equal(made.states.at(-1), "applied");
  equal(made.watch.status.detail, "");
});

Deno.test("CatalogWatch keeps the old catalog when the file is gone or cannot be read", async () => {
  await using made = await bench({ catalog: EMPTY_CATALOG, text: ONE, revision: 4 });
  await made.watch.check();
  deepEqual(made.states, ["unreadable"]);
  match(made.lines.join(""), /Cannot read the catalog; the last applied one stays/);
  await made.write(ONE);
  deepEqual(made.states.at(-1), "applied");
  equal(made.current().revision, 4, "what is stored already is not applied again");
});

Deno.test("CatalogWatch holds back what has to wait and asks again", async () => {
  await using made = await bench();
  await made.write(TWO);
  made.judgeBy({ kind: "wait", reason: "stops_many", detail: "it would stop 3 of 4 replicas" });
  await made.write(ONE);
  await made.watch.check();
  equal(made.current().text, TWO);
  equal(made.lines.filter((line) => line.includes("would stop 3 of 4")).length, 1);
  made.judgeBy({ kind: "apply" });
  await made.watch.check();
  equal(made.current().text, ONE);
  deepEqual(made.states, ["applied", "waiting", "waiting", "applied"]);
});

Deno.test("CatalogWatch notices writes, renames over the file and links that are turned", async () => {
  await using made = await bench();
  await made.write(ONE);
  const stop = new AbortController();
  const first = made.applied(ONE);
  const running = made.watch.run(stop.signal);
  await first;
  let applied = made.applied(TWO);
  await Deno.writeTextFile(made.file, TWO);
  await applied;

  applied = made.applied(ONE);
  await Deno.writeTextFile(`${made.folder}/new`, ONE);
  await Deno.rename(`${made.folder}/new`, made.file);
  await applied;

  applied = made.applied(TWO);
  const elsewhere = await Deno.makeTempDir();
  await Deno.writeTextFile(`${elsewhere}/catalog.yaml`, TWO);
  await Deno.symlink(`${elsewhere}/catalog.yaml`, `${made.folder}/link`);
  await Deno.rename(`${made.folder}/link`, made.file);
  await applied;
  equal(made.current().revision, 4);
  stop.abort();
  await running;
  await Deno.remove(elsewhere, { recursive: true });
});

Deno.test("CatalogWatch leaves what an operator applied alone until the file changes", async () => {
  await using made = await bench();
  await made.write(ONE);
  await made.apply(TWO);
  await made.watch.check();
  equal(made.current().text, TWO);
  deepEqual(made.states, ["applied", "superseded", "superseded"]);
  equal(made.lines.filter((line) => line.includes("older than the catalog")).length, 1);
  await made.write(`${ONE}# again\n`);
  equal(made.current().text, `${ONE}# again\n`);
  await made.write(ONE);
  equal(made.current().text, ONE, "a text of before counts when the file was changed to it");
});

Deno.test("CatalogWatch drops a text that waits when an operator applies another", async () => {
  await using made = await bench();
  await made.write(TWO);
  made.judgeBy({ kind: "wait", reason: "stops_many", detail: "it would stop all" });
  await made.write(ONE);
  await made.apply(`${TWO}# by hand\n`);
  made.judgeBy({ kind: "apply" });
  await made.watch.check();
  equal(made.current().text, `${TWO}# by hand\n`);
  equal(made.states.at(-1), "superseded");
});

Deno.test("CatalogWatch of a control that takes over does not act on an older file of its own", async () => {
  const stored = { catalog: EMPTY_CATALOG, text: TWO, revision: 2 };
  const applied = new Set([catalogHash(ONE), catalogHash(TWO)]);
  await using made = await bench(stored, { seen: undefined, applied });
  await made.write(ONE);
  deepEqual([made.current().text, made.states], [TWO, ["superseded"]]);
  deepEqual(made.remembered, [catalogHash(ONE)]);
  await made.write(`${ONE}# new\n`);
  equal(made.current().text, `${ONE}# new\n`);

  await using newer = await bench(stored, { seen: undefined, applied });
  await newer.write(`${TWO}# deployed while nobody led\n`);
  equal(newer.current().revision, 3);
});

Deno.test("CatalogWatch of a control that was restarted acts on what the file was changed to meanwhile", async () => {
  const stored = { catalog: EMPTY_CATALOG, text: TWO, revision: 2 };
  const applied = new Set([catalogHash(ONE), catalogHash(TWO)]);
  await using taken = await bench(stored, { seen: catalogHash(TWO), applied });
  await taken.write(ONE);
  equal(taken.current().text, ONE, "taken back by hand while control was away");
  await using untouched = await bench(stored, { seen: catalogHash(ONE), applied });
  await untouched.write(ONE);
  equal(untouched.current().text, TWO, "applied over the file before the restart");
});
