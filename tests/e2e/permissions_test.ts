/**
 * Every program is confined: started through its own launcher, with a probe in the place of its
 * entry file, it is refused what it has no business with.
 */
import { deepEqual, equal, ok } from "node:assert/strict";
import { join } from "node:path";
import { ROOT, runCommand } from "./heddle.ts";

const PROGRAMS = ["control", "router", "agent", "ctl", "sim"] as const;

const PROBE = `
const outside = Deno.args[0];
const remote = "https://example.invalid/x.ts";
const probes = {
  read: () => Deno.readTextFile("/etc/shadow"),
  write: () => Deno.writeTextFile(outside + "/escaped", "x"),
  run: () => new Deno.Command("/bin/sh", { args: ["-c", "true"] }).output(),
  ffi: () => Deno.dlopen("libc.so.6", { getpid: { parameters: [], result: "i32" } }),
  env: () => Deno.env.get("SHELL_SECRET"),
  import: () => import(remote),
  importStatic: () => import("https://example.invalid/y.ts"),
};
const found = {};
for (const [name, probe] of Object.entries(probes)) {
  try {
    await probe();
    found[name] = "allowed";
  } catch (error) {
    found[name] = error.name + ": " + error.message;
  }
}
console.log(JSON.stringify(found));
`;

for (const program of PROGRAMS) {
  Deno.test(`${program} may do nothing beyond its permission set`, async () => {
    const folder = await Deno.makeTempDir({ prefix: "heddle-permissions-" });
    try {
      const found = await probe(program, folder);
      for (const name of ["read", "write", "run", "ffi", "env"]) {
        ok(found[name]?.startsWith("NotCapable"), `${name}: ${found[name]}`);
      }
      for (const name of ["import", "importStatic"]) {
        // Refused before anything is asked of the network: by permission, or by --no-remote.
        ok(
          /NotCapable|remote specifier was specified|--no-remote/i.test(found[name] ?? ""),
          `${name}: ${found[name]}`,
        );
      }
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  });
}

async function probe(program: string, folder: string): Promise<Record<string, string>> {
  const launcher = program === "ctl" ? "heddle" : `heddle-${program}`;
  const state = join(folder, "state");
  const outside = join(folder, "outside");
  await Deno.mkdir(state);
  await Deno.mkdir(outside);
  const entry = join(folder, "probe.ts");
  await Deno.writeTextFile(entry, PROBE);
  const text = await Deno.readTextFile(join(ROOT, "bin", launcher));
  const changed = text.replaceAll(`"$here/../${program}/main.ts"`, `"${entry}"`)
    .replace('$(dirname "$(readlink -f "$0")")', `"${join(ROOT, "bin")}"`);
  ok(changed.includes(entry) && !changed.includes("main.ts"), `launcher of ${program} was changed`);
  const copy = join(folder, launcher);
  await Deno.writeTextFile(copy, changed, { mode: 0o700 });
  const result = await runCommand(copy, [outside], {
    HEDDLE_DENO: Deno.execPath(),
    HEDDLE_STATE: state,
    SHELL_SECRET: "x",
  });
  equal(result.code, 0, result.stderr);
  return JSON.parse(result.stdout);
}

Deno.test("no launcher and no task asks for every permission", async () => {
  const wide = /--allow-all|(^|\s)-A(\s|$)/m;
  const found: string[] = [];
  for await (const entry of Deno.readDir(join(ROOT, "bin"))) {
    const text = await Deno.readTextFile(join(ROOT, "bin", entry.name));
    if (text.includes("HEDDLE_DENO") && wide.test(text)) found.push(entry.name);
  }
  const config = JSON.parse(await Deno.readTextFile(join(ROOT, "deno.json")));
  for (const [name, task] of Object.entries(config.tasks)) {
    if (wide.test(JSON.stringify(task))) found.push(name);
  }
  deepEqual(found, []);
});
