import { deepEqual, equal, ok } from "node:assert/strict";
import { modelFiles } from "../../core/host/model_files.ts";
import { readRoom, scanDirectory } from "./model_dirs.ts";

const never = new AbortController().signal;

async function withFiles(
  files: Readonly<Record<string, number>>,
  use: (root: string) => Promise<void>,
): Promise<void> {
  const root = await Deno.makeTempDir();
  try {
    for (const [path, size] of Object.entries(files)) {
      const at = `${root}/${path}`;
      await Deno.mkdir(at.replace(/\/[^/]*$/, ""), { recursive: true });
      await Deno.writeFile(at, new Uint8Array(size));
    }
    await use(root);
  } finally {
    await Deno.remove(root, { recursive: true });
  }
}

async function found(root: string): Promise<string[]> {
  const { folders } = await scanDirectory(root, never);
  return modelFiles(folders).map((file) => `${file.path.slice(root.length)} ${file.sizeBytes}`);
}

Deno.test("scanDirectory() finds folders and GGUF files, and no download on its way", async () => {
  await withFiles({
    "qwen/config.json": 10,
    "qwen/model-00001-of-00002.safetensors": 100,
    "qwen/model-00002-of-00002.safetensors": 50,
    "qwen/vae/config.json": 5,
    "tiny.gguf": 7,
    "half.gguf.part": 9,
    "big-00001-of-00002.gguf": 20,
    "big-00002-of-00002.gguf": 22,
    "torn-00001-of-00003.gguf": 20,
    ".cache/secret.gguf": 1,
    "notes/readme.txt": 3,
  }, async (root) => {
    deepEqual(await found(root), ["/big-00001-of-00002.gguf 42", "/qwen 160", "/tiny.gguf 7"]);
  });
});

Deno.test("scanDirectory() follows a hub cache's links, and no circle for ever", async () => {
  const blob = "hub/models--a--b/blobs/123";
  await withFiles({ [blob]: 11, "hub/models--a--b/refs/main": 3 }, async (root) => {
    const snapshot = `${root}/hub/models--a--b/snapshots/rev`;
    await Deno.mkdir(snapshot, { recursive: true });
    await Deno.symlink("../../blobs/123", `${snapshot}/model.safetensors`);
    await Deno.symlink("..", `${snapshot}/up`);
    await Deno.symlink("/nowhere", `${root}/dangling.gguf`);
    deepEqual(await found(root), ["/hub/models--a--b/snapshots/rev 11"]);
  });
});

Deno.test("scanDirectory() finds a quantisation in a folder below a model's own", async () => {
  await withFiles({ "repo/config.json": 1, "repo/Q4/m.gguf": 5 }, async (root) => {
    deepEqual(await found(root), ["/repo 1", "/repo/Q4/m.gguf 5"]);
  });
});

Deno.test("scanDirectory() stops at its bounds and says so", async () => {
  await withFiles({}, async (root) => {
    for (let at = 0; at < 2_001; at += 1) await Deno.mkdir(`${root}/f${at}`);
    const { folders, problems } = await scanDirectory(root, never);
    equal(folders.length, 2_000);
    deepEqual(problems.map((problem) => problem.reason), ["model_dir_truncated"]);
  });
});

Deno.test("readRoom() tells free bytes, and a directory that is not there", async () => {
  await withFiles({}, async (root) => {
    const room = await readRoom(root);
    ok((room.freeBytes ?? 0) > 0);
    deepEqual(room.problems, []);
    const missing = await readRoom(`${root}/none`);
    equal(missing.freeBytes, undefined);
    deepEqual(missing.problems.map((problem) => problem.reason), ["model_dir_missing"]);
    ok(missing.problems[0]?.remedy.includes(`sudo mkdir -p ${root}/none,`));
    const spaced = await readRoom(`${root}/my models`);
    ok(spaced.problems[0]?.remedy.includes(`sudo mkdir -p '${root}/my models',`));
  });
});
