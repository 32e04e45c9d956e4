/** The nodes of one `up`: this machine, or the described ones of a fleet file. */
import { dirname, resolve } from "node:path";
import { loadConfig } from "@heddle/common/config_file";
import { errorText, HeddleError } from "@heddle/proto/error";
import { type FleetNode, fleetSchema } from "./fleet_file.ts";
import type { UpEngine, UpOptions } from "../options.ts";

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

type RealEngine = Exclude<UpEngine, "sim">;

const PROGRAMS: Readonly<Record<RealEngine, string>> = {
  llamacpp: "llama-server",
  vllm: "vllm",
  sglang: "sglang",
};

/** Turns flags and the files they name into a plan. Throws `invalid_input`. */
export async function planUp(
  options: UpOptions,
  tree: { root: string; bin: string; hostname: string },
): Promise<UpPlan> {
  const sim = { name: "sim", path: resolve(tree.bin, "heddle-sim") };
  const own = nodeName(tree.hostname);
  const { engine } = options;
  if (engine !== "sim" && options.model !== undefined) {
    const model = resolve(options.model);
    await demandModel(model, engine);
    return {
      nodes: [{
        name: own,
        engines: [{ name: engine, path: await findEngine(engine, options.enginePath) }],
        described: undefined,
        modelDirs: [dirname(model)],
      }],
      catalog: { text: modelCatalog(model, engine) },
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

async function demandModel(path: string, engine: RealEngine): Promise<void> {
  const wanted = engine === "llamacpp" ? "file" : "directory";
  const stat = await Deno.stat(path).catch((error: unknown) => {
    throw new HeddleError("invalid_input", `Cannot use --model ${path}: ${errorText(error)}`);
  });
  if (wanted === "file" ? stat.isFile : stat.isDirectory) return;
  throw new HeddleError(
    "invalid_input",
    `Cannot use --model ${path}: it is not a ${wanted}, which ${engine} needs`,
  );
}

async function findEngine(engine: RealEngine, given: string | undefined): Promise<string> {
  const isFile = (path: string) => Deno.stat(path).then((stat) => stat.isFile, () => false);
  if (given !== undefined) {
    const path = resolve(given);
    if (await isFile(path)) return path;
    throw new HeddleError(
      "invalid_input",
      `Cannot use --engine-path ${path}: there is no such file`,
    );
  }
  const program = PROGRAMS[engine];
  for (const folder of (Deno.env.get("PATH") ?? "").split(":")) {
    const path = resolve(folder, program);
    if (await isFile(path)) return path;
  }
  throw new HeddleError(
    "invalid_input",
    `Cannot find ${program} on PATH: install it, or name it with --engine-path PROGRAM`,
  );
}

/** Enough for a conversation, small enough for any machine. */
const ARGS: Readonly<Record<RealEngine, readonly string[]>> = {
  llamacpp: ["-c", "4096"],
  // It is tried here, not measured: compiling would take minutes.
  vllm: ["--enforce-eager"],
  sglang: [],
};

function modelCatalog(model: string, engine: RealEngine): string {
  const file = model.split("/").at(-1) ?? model;
  const name = file.replace(/\.gguf$/i, "").toLowerCase().replace(/[^a-z0-9._-]+/g, "-");
  return `models:
  - name: ${JSON.stringify(name)}
    aliases: [default]
    source: ${JSON.stringify(model)}
    profiles:
      - name: cpu
        engine: ${engine}
        args: ${JSON.stringify(ARGS[engine])}
`;
}
