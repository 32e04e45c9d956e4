/**
 * `deno task console`: writes control/edge/console/http/page.json, the console's page as control serves it,
 * from control/console. It is committed, because control is started from a checkout too, where
 * nothing is built. With `--check` nothing is written, and a page that is not what its source gives
 * fails.
 */
import { fileURLToPath } from "node:url";
import { ROOT } from "../repository.ts";
import { run } from "../run.ts";
import { runTool, say } from "../say.ts";

const SOURCE = `${ROOT}/control/console`;
const TARGET = `${ROOT}/control/edge/console/http/page.json`;

/** The page's files as one JSON text. */
async function render(): Promise<string> {
  const page = {
    html: await Deno.readTextFile(`${SOURCE}/index.html`),
    js: await bundle(),
    css: await styles(),
    icon: await Deno.readTextFile(`${SOURCE}/icon.svg`),
  };
  return `${JSON.stringify(page, null, 2)}\n`;
}

async function bundle(): Promise<string> {
  const file = await Deno.makeTempFile({ suffix: ".js" });
  try {
    const { ok, output } = await run(Deno.execPath(), {
      args: [
        "bundle",
        "--quiet",
        "--frozen",
        "--platform=browser",
        "--minify",
        `--output=${file}`,
        "control/console/main.tsx",
      ],
      cwd: ROOT,
    });
    if (!ok) throw new Error(`Cannot bundle the console:\n${output.trimEnd()}`);
    return await Deno.readTextFile(file);
  } finally {
    await Deno.remove(file);
  }
}

/** The plots' own rules first, so that ours win. */
async function styles(): Promise<string> {
  const plots = await Deno.readTextFile(
    fileURLToPath(import.meta.resolve("uplot/dist/uPlot.min.css")),
  );
  return `${plots.trim()}\n${await Deno.readTextFile(`${SOURCE}/style.css`)}`;
}

if (import.meta.main) {
  await runTool(async () => {
    const text = await render();
    if (!Deno.args.includes("--check")) {
      await Deno.writeTextFile(TARGET, text);
      return say(`${TARGET}: ${Math.round(text.length / 1_000)} kB`);
    }
    if (text !== await Deno.readTextFile(TARGET).catch(() => "")) {
      throw new Error(
        "The console's page is not what control/console gives. Run: deno task console",
      );
    }
  });
}
