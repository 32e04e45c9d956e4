/** The nodes of one `up`: this machine, or the described ones of a fleet file. */
import { dirname, resolve } from "node:path";
import { loadConfig } from "@heddle/common/config_file";
import { errorText, HeddleError } from "@heddle/proto/error";
import { type FleetNode, fleetSchema } from "./fleet_file.ts";
import type { UpOptions } from "../options.ts";

/** An engine as agent.yaml names it. */
export interface NodeEngine {
  readonly name: string;
  readonly path: string;
}

export interface UpNode {
  readonly name: string;
  readonly engines: readonly NodeEngine[];
  /** Described hardware; undefined means the hardware of this machine. */
  readonly described: FleetNode | undefined;
  /** Folders with weights that the agent may read. */
  readonly modelDirs: readonly string[];
}

/** What `up` is going to run. */
export interface UpPlan {
  readonly nodes: readonly UpNode[];
  /** A catalog file to use as it is, or the text of one to write. */
  readonly catalog: { readonly file: string } | { readonly text: string };
}

/** Turns flags and the files they name into a plan. Throws `invalid_input`. */
export async function planUp(
  options: UpOptions,
  tree: { root: string; bin: string; hostname: string },
): Promise<UpPlan> {
  const sim = { name: "sim", path: resolve(tree.bin, "heddle-sim") };
  const own = nodeName(tree.hostname);
  if (options.engine === "llamacpp" && options.model !== undefined) {
    const model = resolve(options.model);
    await demandFile(model, "--model");
    const server = await findLlamaServer(options.llamaServer);
    return {
      nodes: [{
        name: own,
        engines: [{ name: "llamacpp", path: server }],
        described: undefined,
        modelDirs: [dirname(model)],
      }],
      catalog: { text: llamaCatalog(model) },
    };
  }
  if (options.fleet !== undefined) {
    const fleet = await loadConfig(fleetSchema, options.fleet);
    const beside = fleet.catalog === undefined
      ? resolve(tree.root, "examples/catalog.yaml")
      : resolve(dirname(options.fleet), fleet.catalog);
    return {
      nodes: fleet.nodes.map((node) => ({
        name: node.name,
        engines: [sim],
        described: node,
        modelDirs: [],
      })),
      catalog: { file: options.catalog === undefined ? beside : resolve(options.catalog) },
    };
  }
  return {
    nodes: [{ name: own, engines: [sim], described: undefined, modelDirs: [] }],
    catalog: { file: resolve(options.catalog ?? resolve(tree.root, "examples/catalog.yaml")) },
  };
}

// A host name may hold what an identity may not.
function nodeName(hostname: string): string {
  const name = hostname.split(".")[0]?.replace(/[^A-Za-z0-9-]+/g, "-").replace(/^-+|-+$/g, "");
  return name === undefined || name === "" ? "node" : name.slice(0, 64);
}

async function demandFile(path: string, flag: string): Promise<void> {
  try {
    if ((await Deno.stat(path)).isFile) return;
  } catch (error) {
    throw new HeddleError("invalid_input", `Cannot use ${flag} ${path}: ${errorText(error)}`);
  }
  throw new HeddleError("invalid_input", `Cannot use ${flag} ${path}: it is not a file`);
}

async function findLlamaServer(given: string | undefined): Promise<string> {
  const named = given ?? Deno.env.get("HEDDLE_LLAMA_SERVER");
  if (named !== undefined) {
    await demandFile(resolve(named), "--llama-server");
    return resolve(named);
  }
  for (const folder of (Deno.env.get("PATH") ?? "").split(":")) {
    const path = resolve(folder, "llama-server");
    const found = await Deno.stat(path).then((stat) => stat.isFile, () => false);
    if (found) return path;
  }
  throw new HeddleError(
    "invalid_input",
    "Cannot find llama-server on PATH: install llama.cpp, or name it with --llama-server PATH",
  );
}

/** Enough for a conversation, small enough for any machine. */
const LLAMA_CONTEXT = 4096;

function llamaCatalog(model: string): string {
  const file = model.split("/").at(-1) ?? model;
  const name = file.replace(/\.gguf$/i, "").toLowerCase().replace(/[^a-z0-9._-]+/g, "-");
  return `models:
  - name: ${JSON.stringify(name)}
    aliases: [default]
    source: ${JSON.stringify(model)}
    profiles:
      - name: cpu
        engine: llamacpp
        args: [-c, "${LLAMA_CONTEXT}"]
`;
}
