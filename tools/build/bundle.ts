/** One file of JavaScript for each program, with everything in it that it imports. */
import { HeddleError } from "@heddle/proto/error";
import { z } from "zod";
import { execute } from "./command.ts";
import { PROGRAMS } from "./program.ts";

/** Writes lib/NAME.mjs for every program into `folder`. Throws `system`. */
export async function writeBundles(folder: string): Promise<void> {
  const made = `${folder}/made`;
  // All in one call, which takes a quarter of the time; the files are the same as one by one.
  await execute(Deno.execPath(), [
    "bundle",
    "--quiet",
    "--minify",
    "--frozen",
    "--outdir",
    made,
    ...PROGRAMS.map(({ folder }) => `${folder}/main.ts`),
  ]);
  await Deno.mkdir(`${folder}/lib`);
  for (const { room, folder: source, name } of PROGRAMS) {
    const path = `${folder}/lib/${name}.mjs`;
    const text = withRequire(await Deno.readTextFile(`${made}/${source}/main.js`));
    await Deno.writeTextFile(path, text);
    const problems = bundleProblems(text, await importsOf(path));
    if (problems.length > 0) {
      throw new HeddleError("system", `Cannot package ${room}: ${problems.join("; ")}`);
    }
  }
  await Deno.remove(made, { recursive: true });
}

/**
 * The helper through which packages in CommonJS load `node:` modules; a module has no `require`. Deno
 * puts its own in the place of it, but overlooks one whose minified name holds a "$".
 */
const REQUIRE = new RegExp(
  String.raw`var ([\w$]+)=\((\w+)=>typeof require<"u"\?require:typeof Proxy<"u"\?new Proxy\(` +
    String.raw`.{1,80}?\):\2\)\(function\(\w+\)\{if\(typeof require<"u"\)return require\.apply` +
    String
      .raw`\(this,arguments\);throw Error\('Dynamic require of "'\+\w+\+'" is not supported'\)\}\);`,
);

/** The bundle with that helper replaced where Deno has not done it. Pure. */
export function withRequire(text: string): string {
  return text.replace(
    REQUIRE,
    (_, name: string) =>
      'import{createRequire as __createRequire}from"node:module";' +
      `var ${name}=__createRequire(import.meta.url);`,
  );
}

/** What would break a bundle that is alone in its folder. Pure. */
export function bundleProblems(text: string, imports: readonly string[]): readonly string[] {
  const problems = imports.filter((specifier) => !specifier.startsWith("node:"))
    .map((specifier) => `its bundle imports "${specifier}", which a release does not have`);
  if (text.includes("Dynamic require of")) {
    problems.push(
      "packages in it cannot load modules of Node's: Deno's bundler has changed its helper",
    );
  }
  if (/\bnew Worker\((?!import\.meta\.url\b|`data:)/.test(text)) {
    problems.push(
      "it starts a Worker from a file of its own, which a release does not have; " +
        "start new Worker(import.meta.url) and tell it what to do, or give it a `data:` URL",
    );
  }
  return problems;
}

const infoSchema = z.object({
  modules: z.array(
    z.object({ dependencies: z.array(z.object({ specifier: z.string() })).default([]) }),
  ),
});

async function importsOf(path: string): Promise<readonly string[]> {
  const info = infoSchema.parse(
    JSON.parse(await execute(Deno.execPath(), ["info", "--no-config", "--json", path])),
  );
  return info.modules.flatMap(({ dependencies }) => dependencies.map(({ specifier }) => specifier));
}
