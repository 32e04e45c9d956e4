/** Every command in every form, with and without --watch: each either has it or says that it has not. */
import { deepEqual, equal, match } from "node:assert/strict";
import { ExitCode } from "@stricli/core";
import { app } from "./app.ts";
import { REACHED, runApp } from "./testing/app_fake.ts";

type Target = typeof app.root;

/** ["nodes", "list"] for every command that help shows. */
function commandsOf(target: Target, words: readonly string[]): readonly (readonly string[])[] {
  if (!("getAllEntries" in target)) return [words];
  return target.getAllEntries().filter(({ hidden }) => !hidden)
    .flatMap((entry) => commandsOf(entry.target, [...words, entry.name["convert-camel-to-kebab"]]));
}

/** What a command wants beside the flags of its form. */
const ARGUMENTS: Readonly<Record<string, readonly string[]>> = {
  bench: ["m"],
  cordon: ["n1"],
  drain: ["n1"],
  explain: ["m"],
  logs: ["r1"],
  plan: ["-"],
  apply: ["-"],
  uncordon: ["n1"],
  "ca token": ["--name", "ann", "--role", "viewer"],
  "config use": ["lab"],
  "join-tokens create": ["rented"],
  "keys show": ["ci"],
  "limits show": ["acme"],
  "models explain": ["m"],
  "models inspect": ["hf://acme/m"],
  "orgs show": ["acme"],
  "projects show": ["acme/chat"],
  "replicas logs": ["r1"],
  "teams show": ["acme/research"],
};

/** As docs/ctl.md has it. */
const LISTS = [
  ..."audit,ca status,ca struck,capacity,config list,decisions,engines,events,keys list".split(","),
  ..."limits show,models list,nodes list,orgs list,prices list,projects list".split(","),
  ..."replicas list,routers,teams list,usage,weights list".split(","),
];
const SCREENS = [
  ..."bench,ca token,catalog,config show,doctor,explain,join-tokens create".split(","),
  ..."models explain,models inspect,plan,version".split(","),
];
/** Screens that are drawn again and again. */
const WATCHED = ["status", "top"];
/** Their CSV is that of a list in them. */
const WITH_LIST = [
  "keys show",
  "logs",
  "orgs show",
  "projects show",
  "replicas logs",
  "teams show",
];

const FORMS: readonly (readonly string[])[] = [
  ["-o", "table"],
  ["-o", "wide"],
  ["-o", "json"],
  ["--json"],
  ["-o", "yaml"],
  ["-o", "csv"],
];

/** "has" when the command goes on to its work, else the complaint. */
async function tried(words: readonly string[], flags: readonly string[]): Promise<string> {
  // Interrupted before it begins, so that nothing is drawn for ever.
  const { err, out, code } = await runApp(
    [...words, ...ARGUMENTS[words.join(" ")] ?? [], ...flags],
    { signal: AbortSignal.abort() },
  );
  const went = code === 0 || err.includes(REACHED) || out.includes(REACHED) || code === 1;
  return went ? "has" : err;
}

function expected(
  name: string,
): { readonly form: boolean; readonly csv: boolean; readonly watch: boolean } {
  const [list, watched] = [LISTS.includes(name), WATCHED.includes(name)];
  const screen = SCREENS.includes(name) || watched;
  const withList = WITH_LIST.includes(name);
  return { form: list || screen || withList, csv: list || withList, watch: list || watched };
}

Deno.test("every command has the forms and --watch that its kind has, or refuses them with a reason", async () => {
  const commands = commandsOf(app.root, []);
  const known = new Set([...LISTS, ...SCREENS, ...WATCHED, ...WITH_LIST]);
  for (const words of commands) {
    const name = words.join(" ");
    known.delete(name);
    const want = expected(name);
    for (const form of FORMS) {
      const outcome = await tried(words, form);
      const has = form.includes("csv") ? want.csv : want.form;
      equal(outcome === "has", has, `${name} ${form.join(" ")}: ${outcome}`);
      if (has) continue;
      match(
        outcome,
        /Lists alone have -o csv|^No (alias|flag) registered/,
        `${name} ${form.join(" ")}`,
      );
    }
    const watching = await tried(words, ["--watch"]);
    equal(watching === "has", want.watch, `${name} --watch: ${watching}`);
    if (!want.watch) match(watching, /^No flag registered for --watch/, name);
  }
  deepEqual([...known], [], "and these are no commands");
});

Deno.test("flags that speak against each other are refused before anything is asked", async () => {
  for (
    const [args, why] of [
      [["events", "-f", "-w"], /--follow .* --watch/],
      [["top", "--once", "-w"], /--watch .* --once/],
      [["catalog", "--text", "-o", "yaml"], /--text has one form/],
      [["status", "-o", "csv"], /Lists alone have -o csv/],
    ] as const
  ) {
    const { err, code } = await runApp(args);
    match(err, why);
    equal(code, ExitCode.InvalidArgument, args.join(" "));
  }
});
