/**
 * `deno task schema`: writes schema/*.json, the JSON Schemas by which editors complete and check the
 * configuration files, from the zod schemas that the programs themselves use. With `--check` nothing
 * is written, and a file that is not what its schema says fails.
 */
import { z } from "zod";
import { diffFolders } from "../diff_folders.ts";
import { ROOT } from "../repository.ts";
import { runTool } from "../say.ts";

/** One document that operators write: its schema's home, by path from the root and name. */
export interface Document {
  /** Name of the JSON Schema, without `.json`; the configuration file is called the same. */
  readonly name: string;
  readonly module: string;
  readonly export: string;
}

/** Every document with a schema. */
export const DOCUMENTS: readonly Document[] = [
  { name: "control", module: "control/config.ts", export: "configSchema" },
  { name: "catalog", module: "control/core/catalog.ts", export: "catalogSchema" },
  { name: "router", module: "router/config.ts", export: "configSchema" },
  { name: "agent", module: "agent/config.ts", export: "configSchema" },
  { name: "ctl", module: "ctl/config.ts", export: "configSchema" },
  { name: "fleet", module: "tools/up/layout/fleet_file.ts", export: "fleetSchema" },
];

/** The JSON Schema of one document, as text. Defaulted keys stay optional: it describes input. */
export async function render(document: Document): Promise<string> {
  const module: Record<string, unknown> = await import(
    import.meta.resolve(`../../${document.module}`)
  );
  const schema = module[document.export];
  if (!(schema instanceof z.ZodType)) {
    throw new Error(
      `Cannot write schema/${document.name}.json: ${document.module} exports no zod schema ` +
        `named "${document.export}"`,
    );
  }
  const json = {
    title: `Heddle: ${document.name}.yaml`,
    ...z.toJSONSchema(schema, { io: "input" }),
  };
  return `${JSON.stringify(json, null, 2)}\n`;
}

/** Writes every schema into `folder`, and nothing when one of them fails. */
async function write(folder: string): Promise<void> {
  const texts = await Promise.all(
    DOCUMENTS.map(async (document) => [document.name, await render(document)] as const),
  );
  await Deno.mkdir(folder, { recursive: true });
  for (const [name, text] of texts) await Deno.writeTextFile(`${folder}/${name}.json`, text);
}

async function check(): Promise<void> {
  const folder = await Deno.makeTempDir({ prefix: "heddle-schema-" });
  try {
    await write(folder);
    const differences = diffFolders(`${ROOT}/schema`, folder);
    if (differences.length > 0) {
      throw new Error(
        `schema/ is not what the programs accept: ${differences.join(", ")}. ` +
          "Run: deno task schema",
      );
    }
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

if (import.meta.main) {
  await runTool(() => Deno.args.includes("--check") ? check() : write(`${ROOT}/schema`));
}
