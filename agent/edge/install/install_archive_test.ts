import { deepEqual, equal, match, ok, rejects } from "node:assert/strict";
import { createHash } from "node:crypto";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import {
  decodeInstallRequest,
  decodeMark,
  InstallError,
} from "../../core/install/install_documents.ts";
import { installArchive } from "./install_archive.ts";
import { releaseServer, type TarEntry, tarGz } from "./release_fake.ts";

const SHIM = fileURLToPath(new URL("../../../bin/heddle-shim", import.meta.url));
const CC = "/usr/bin/cc";
const ARCH = Deno.build.arch;
const NAME = ARCH === "x86_64"
  ? "llama-b1-bin-ubuntu-x64.tar.gz"
  : "llama-b1-bin-ubuntu-arm64.tar.gz";
const SERVER: TarEntry = {
  path: "build/bin/llama-server",
  body: '#!/bin/sh\necho "version: 4711 (abc)"\n',
  mode: 0o755,
};

async function install(
  entries: readonly TarEntry[],
  changes: { readonly name?: string; readonly digest?: string; readonly spoil?: boolean } = {},
) {
  const bytes = await tarGz(entries);
  const { name = NAME, digest } = changes;
  await using server = await releaseServer({
    "llama-b1-bin-win-cuda-x64.zip": { bytes: new Uint8Array([1]) },
    "llama-b1-bin-ubuntu-vulkan-x64.tar.gz": { bytes: new Uint8Array([1]) },
    [name]: { bytes, ...(digest === undefined ? {} : { digest }) },
  });
  const into = await Deno.makeTempDir();
  const request = decodeInstallRequest(JSON.stringify({
    engine: "llamacpp",
    version: "b1",
    into,
    releases: `${server.url}/releases`,
    arch: ARCH,
    shim: SHIM,
  }));
  const said: string[] = [];
  const how = {
    say: (words: string) => said.push(words),
    signal: new AbortController().signal,
    retryMs: 5,
  };
  try {
    const installed = await installArchive(request, how);
    const mark = decodeMark(
      await Deno.readTextFile(join(into, "llamacpp-b1", ".heddle-engine.json")),
    );
    return { installed, mark, said, left: [...Deno.readDirSync(into)].map((each) => each.name) };
  } catch (error) {
    deepEqual([...Deno.readDirSync(into)], [], "nothing is left of what did not work");
    throw error;
  } finally {
    await Deno.remove(into, { recursive: true });
  }
}

function refusedAs(reason: string, words: RegExp) {
  return (error: unknown) => {
    ok(error instanceof InstallError, String(error));
    equal(error.reason, reason, error.message);
    match(error.message, words);
    return true;
  };
}

Deno.test("installArchive() unpacks what the release holds for this machine, and sees it run", async () => {
  const { installed, mark, said, left } = await install([
    { path: "build/", type: "5", mode: 0o755 },
    { path: "build/bin/libggml.so.1", body: "x" },
    { path: "build/bin/libggml.so", link: "libggml.so.1" },
    SERVER,
  ]);
  equal(installed.version, "4711");
  match(installed.path, /llamacpp-b1\/build\/bin\/llama-server$/);
  deepEqual(mark, {
    format: 1,
    engine: "llamacpp",
    version: "b1",
    program: "build/bin/llama-server",
  });
  deepEqual(left, ["llamacpp-b1"]);
  ok(said.includes("unpacking") && said.includes("trying it"), said.join());
});

/** Deeper than the folder that an archive is unpacked into, and the way up from there. */
const DEEP = "1/2/3/4/5/6/7/8";
const UP = "../../../../../../../..";

Deno.test("installArchive() refuses what leads out of its folder", async (t) => {
  const cases: Record<string, readonly [readonly TarEntry[], RegExp]> = {
    "a path with ..": [[{ path: "a/../../evil", body: "x" }, SERVER], /leads out of the folder/],
    "an absolute path": [[{ path: "/tmp/evil", body: "x" }, SERVER], /absolute path/],
    "a link out": [[{ path: "lib", link: "../../etc" }, SERVER], /link to "\.\.\/\.\.\/etc"/],
    "an absolute link": [[{ path: "lib", link: "/etc" }, SERVER], /link to "\/etc"/],
    "a hard link out": [
      [{ path: "p", link: "../passwd", type: "1" }, SERVER],
      /link to "\.\.\/passwd"/,
    ],
    "a device": [[{ path: "null", type: "3" }, SERVER], /special file/],
    "a file through a link": [
      [{ path: "d/real", body: "x" }, { path: "l", link: "d" }, { path: "l/x", body: "y" }],
      /goes through what is no folder/,
    ],
    "a link out, through links that are shorter than their names": [
      [
        { path: `${DEEP}/up`, link: UP },
        { path: "out", link: `${DEEP}/up/../${UP}/etc` },
        SERVER,
      ],
      /"out" is a link that leads out of the folder, to "\//,
    ],
    "a hard link to a link": [
      [
        { path: `${DEEP}/up`, link: UP },
        { path: "out", link: `${DEEP}/up/../${UP}/etc/hostname` },
        { path: "copy", link: "out", type: "1" },
        SERVER,
      ],
      /"copy" is a link to no file/,
    ],
    "a link to nothing": [[{ path: "l", link: "gone" }, SERVER], /to what is not there/],
    "links in a ring": [
      [{ path: "l", link: "m" }, { path: "m", link: "l" }, SERVER],
      /to what is not there/,
    ],
    "nothing to run": [[{ path: "README", body: "x" }], /holds no llama-server/],
  };
  for (const [name, [entries, words]] of Object.entries(cases)) {
    await t.step(name, () => rejects(install(entries), refusedAs("archive_refused", words)));
  }
});

Deno.test("installArchive() takes nothing that is not what the release promises", async () => {
  await rejects(
    install([SERVER], { digest: `sha256:${"0".repeat(64)}` }),
    refusedAs("corrupt", /spoilt 2 times/),
  );
  await rejects(install([SERVER], { digest: "" }), refusedAs("no_digest", /no SHA-256/));
  await rejects(
    install([SERVER], { name: "llama-b1-bin-macos-arm64.tar.gz" }),
    refusedAs("unsupported", /no \.tar\.gz for Linux on .*llama-b1-bin-macos/),
  );
});

Deno.test("installArchive() counts nothing that does not run here", async () => {
  const elf = (machine: number) => {
    const bytes = new Uint8Array(64);
    bytes.set([0x7f, 0x45, 0x4c, 0x46, 2, 1, 1]);
    bytes[18] = machine;
    return bytes;
  };
  const other = ARCH === "x86_64" ? 183 : 62;
  await rejects(
    install([{ ...SERVER, body: elf(other) }]),
    refusedAs("wrong_architecture", /is for (aarch64|x86_64), and this machine is/),
  );
  const fails = "#!/bin/sh\necho 'libcuda.so.1: cannot open shared object file' >&2\nexit 127\n";
  await rejects(
    install([{ ...SERVER, body: fails }]),
    refusedAs("does_not_run", /code 127: libcuda\.so\.1/),
  );
});

Deno.test("installArchive() takes a release from a folder, and asks nobody", async (t) => {
  const bytes = await tarGz([SERVER]);
  const digest = `sha256:${createHash("sha256").update(bytes).digest("hex")}`;
  const root = await Deno.makeTempDir();
  const [releases, into] = [join(root, "releases"), join(root, "engines")];
  await Deno.mkdir(releases);
  const release = async (digest: string) => {
    const assets = [{ name: NAME, browser_download_url: NAME, size: bytes.length, digest }];
    await Deno.writeTextFile(join(releases, "b1.json"), JSON.stringify({ assets }));
  };
  const request = decodeInstallRequest(JSON.stringify({
    engine: "llamacpp",
    version: "b1",
    into,
    releases,
    arch: ARCH,
    shim: SHIM,
  }));
  const how = { say: () => {}, signal: new AbortController().signal, retryMs: 5 };
  try {
    await t.step(
      "one that is not there",
      () => rejects(installArchive(request, how), refusedAs("release_not_found", /b1\.json/)),
    );
    await t.step("an archive that is another", async () => {
      await Deno.writeFile(join(releases, NAME), bytes);
      await release(`sha256:${"0".repeat(64)}`);
      await rejects(installArchive(request, how), refusedAs("corrupt", /has not the SHA-256/));
      deepEqual([...Deno.readDirSync(into)], []);
    });
    await t.step("what its JSON says", async () => {
      await release(digest);
      const { path, version } = await installArchive(request, how);
      equal(path, join(into, "llamacpp-b1", SERVER.path));
      equal(version, "4711");
      deepEqual([...Deno.readDirSync(into)].map(({ name }) => name), ["llamacpp-b1"]);
      deepEqual([...Deno.readDirSync(releases)].length, 2, "the folder is as it was");
    });
  } finally {
    await Deno.remove(root, { recursive: true });
  }
});

Deno.test({
  name: "installArchive() names the library that is missing, of a real program",
  ignore: !hasCompiler(),
  fn: namesMissingLibrary,
});

function hasCompiler(): boolean {
  try {
    return new Deno.Command(CC, { args: ["--version"] }).outputSync().success;
  } catch {
    return false;
  }
}

async function namesMissingLibrary(): Promise<void> {
  const folder = await Deno.makeTempDir();
  try {
    await Deno.writeTextFile(join(folder, "a.c"), "int f(void){return 1;}\n");
    await Deno.writeTextFile(join(folder, "m.c"), "int f(void);int main(void){return f();}\n");
    const cc = async (...args: string[]) => {
      const { success } = await new Deno.Command(CC, { args, cwd: folder }).output();
      ok(success);
    };
    await cc("-shared", "-fPIC", "-o", "libgone4711.so", "a.c");
    await cc("-o", "m", "m.c", "-L.", "-lgone4711");
    const body = await Deno.readFile(join(folder, "m"));
    await rejects(
      install([{ ...SERVER, body }]),
      refusedAs("library_missing", /needs libgone4711\.so, which this machine lacks/),
    );
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}
