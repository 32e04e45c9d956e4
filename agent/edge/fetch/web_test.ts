import { createHash } from "node:crypto";
import { deepEqual, equal, match, ok, rejects } from "node:assert/strict";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { createLeaf, createRoot } from "@heddle/common/pki";
import { decodeRequest, encodeRequest, lastReport } from "../../core/weights/documents.ts";
import { WeightsError } from "../../core/weights/failure.ts";
import { fetchWeights } from "./fetch_weights.ts";
import { fakeHub, someBytes } from "./hub_fake.ts";
import { Progress } from "./progress.ts";
import { fakeProxy, fakeWeb } from "./web_fake.ts";
import { namesInListing, namesInSums } from "./remote/web.ts";

const PROGRAM = fileURLToPath(new URL("../../../bin/heddle-fetch", import.meta.url));
const GGUF = someBytes(200_000, 3);

async function fetched(source: string, more: Record<string, unknown> = {}) {
  const root = await Deno.makeTempDir();
  const into = join(root, "heddle");
  const request = decodeRequest(encodeRequest({
    verb: "fetch",
    source,
    into,
    chunk_bytes: 64_000,
    retry_ms: 5,
    tries: 3,
    stall_ms: 2_000,
    ...more,
  }));
  try {
    using progress = new Progress(() => {});
    const done = await fetchWeights(request, progress, new AbortController().signal);
    const files: Record<string, Uint8Array> = {};
    for await (const { name, isFile } of Deno.readDir(join(into, done.folder))) {
      if (isFile && !name.startsWith(".")) {
        files[name] = await Deno.readFile(join(into, done.folder, name));
      }
    }
    return { done, files };
  } finally {
    await Deno.remove(root, { recursive: true });
  }
}

Deno.test("a file of the web comes whole, whatever its server can", async (t) => {
  const servers = {
    "with ranges": {},
    "without HEAD": { head: false },
    "without ranges": { ranges: false },
    "that does not say how much": { length: false, ranges: false, head: false },
  };
  for (const [name, how] of Object.entries(servers)) {
    await t.step(`a server ${name}`, async () => {
      await using web = await fakeWeb({ "/a b/model.gguf": GGUF }, how);
      const { done, files } = await fetched(`${web.url}/a%20b/model.gguf`);
      equal(done.entry, "model.gguf");
      deepEqual(files, { "model.gguf": GGUF });
    });
  }
});

Deno.test("parts, an index and a folder name what belongs together", async () => {
  const index = JSON.stringify({
    metadata: { total_size: 400_000 },
    weight_map: { a: "m-1.safetensors", b: "m-2.safetensors", c: "../../etc/passwd" },
  });
  const sum = createHash("sha256").update(GGUF).digest("hex");
  await using web = await fakeWeb({
    "/p/q-00001-of-00002.gguf": GGUF,
    "/p/q-00002-of-00002.gguf": someBytes(10, 2),
    "/i/model.safetensors.index.json": index,
    "/i/m-1.safetensors": GGUF,
    "/i/m-2.safetensors": GGUF,
    "/i/config.json": "{}",
    "/s/": "not asked",
    "/s/SHA256SUMS": `${sum}  m.gguf\n${sum} *../up.gguf\n`,
    "/s/m.gguf": GGUF,
    "/h/": '<a href="../">up</a><a href="m.gguf">m</a><a href="?C=N">sort</a><a href="//x/y">z</a>',
    "/h/m.gguf": GGUF,
  });
  const parts = await fetched(`${web.url}/p/q-00001-of-00002.gguf`);
  equal(parts.done.entry, "q-00001-of-00002.gguf");
  deepEqual(Object.keys(parts.files).sort(), ["q-00001-of-00002.gguf", "q-00002-of-00002.gguf"]);
  const model = await fetched(`${web.url}/i/model.safetensors.index.json`);
  equal(model.done.entry, "");
  deepEqual(Object.keys(model.files).sort(), [
    "config.json",
    "m-1.safetensors",
    "m-2.safetensors",
    "model.safetensors.index.json",
  ]);
  for (const folder of ["s", "h"]) {
    deepEqual((await fetched(`${web.url}/${folder}/`)).files, { "m.gguf": GGUF });
  }
});

Deno.test("a file that is not what SHA256SUMS says is refused", async () => {
  await using web = await fakeWeb({
    "/s/SHA256SUMS": `${"0".repeat(64)}  m.gguf\n`,
    "/s/m.gguf": GGUF,
  });
  await rejects(fetched(`${web.url}/s/`), (error: unknown) => {
    ok(error instanceof WeightsError && error.reason === "corrupt", String(error));
    match(error.message, /m\.gguf came spoilt 2 times/);
    return true;
  });
});

Deno.test("what is not the file, or not all of one, never counts as it", async (t) => {
  const cases: readonly (readonly [
    string,
    string,
    RegExp,
    (count: number) => Record<string, string>,
  ])[] = [
    ["replaced by another of its size", "changed", /is not the file that it was/, (count) => ({
      etag: count < 3 ? '"one"' : 'W/"two"',
    })],
    ["replaced, as its date says", "changed", /put SHA256SUMS beside it/, (count) => ({
      etag: "",
      "last-modified": `Mon, 0${count < 3 ? 1 : 2} Jan 2024 00:00:00 GMT`,
    })],
    ["compressed on the way", "unreachable", /came compressed \(gzip\)/, () => ({
      "content-encoding": "gzip",
    })],
    ["a page", "unreachable", /a page in the place of the file/, () => ({
      "content-type": "text/html; charset=utf-8",
    })],
  ];
  for (const [name, reason, words, headers] of cases) {
    await t.step(name, async () => {
      await using web = await fakeWeb({ "/m.gguf": GGUF }, { headers });
      await rejects(fetched(`${web.url}/m.gguf`), (error: unknown) => {
        ok(error instanceof WeightsError && error.reason === reason, String(error));
        match(error.message, words);
        return true;
      });
    });
  }
});

Deno.test("a file keeps its content where only its etag's strength changes", async () => {
  await using web = await fakeWeb({ "/m.gguf": GGUF }, {
    headers: (count) => ({ etag: count % 2 === 0 ? '"one"' : 'W/"one"' }),
  });
  deepEqual((await fetched(`${web.url}/m.gguf`)).files, { "m.gguf": GGUF });
});

Deno.test("what cannot be reached is told with why, and without what signs its address", async () => {
  const gone = await fakeWeb({});
  await gone[Symbol.asyncDispose]();
  await rejects(fetched(`${gone.url}/m.gguf?signature=secret`), (error: unknown) => {
    ok(error instanceof WeightsError && error.reason === "unreachable", String(error));
    match(error.message, /Cannot reach http:\/\/127\.0\.0\.1:\d+\/m\.gguf: .*refused/i);
    ok(!error.message.includes("secret"), error.message);
    return true;
  });
});

Deno.test("listings name nothing that lies elsewhere", () => {
  const base = "http://h/a/";
  const html = '<a href="x.gguf">x</a><A class=y href="/a/sub/y">y</A><a href="/etc/z">z</a>' +
    '<a href="..%2f..%2fe">e</a><a href="x.gguf">again</a>';
  deepEqual(namesInListing(html, base).map(({ path }) => path), ["x.gguf", "sub/y"]);
  const nginx =
    '[ { "name":"m.gguf", "type":"file", "size": 3 }, { "name":"d", "type":"directory" } ]';
  deepEqual(namesInListing(nginx, base).map(({ path }) => path), ["m.gguf"]);
  deepEqual(namesInSums(`${"a".repeat(64)}  ./x/y\nnot a line\n`).map(({ path }) => path), ["x/y"]);
  const [old, now] = ["a", "b"].map((each) => each.repeat(64));
  deepEqual(namesInSums(`${old}  x\n${old}  z\n${now} *./x\n`), [
    { path: "x", hash: { algorithm: "sha256", hex: now } },
    { path: "z", hash: { algorithm: "sha256", hex: old } },
  ]);
});

const HUB = "hf://org/name";

/** The real program, with that environment. */
async function programFetches(
  { source, ...more }: {
    readonly source: string;
    readonly hub?: string;
    readonly ca_file?: string;
  },
  env: Record<string, string>,
): Promise<void> {
  const into = join(await Deno.makeTempDir(), "heddle");
  try {
    const child = new Deno.Command(PROGRAM, {
      env: {
        HEDDLE_DENO: Deno.execPath(),
        HEDDLE_FETCH_INTO: into,
        HEDDLE_FETCH_REQUEST: encodeRequest({ verb: "fetch", source, into, ...more }),
        ...env,
      },
      stdin: "null",
    });
    const { stdout, stderr } = await child.output();
    const report = lastReport(new TextDecoder().decode(stdout));
    equal(report?.kind, "done", new TextDecoder().decode(stderr));
  } finally {
    await Deno.remove(join(into, ".."), { recursive: true });
  }
}

Deno.test("the real program goes through the proxy that its environment names", async () => {
  await using hub = await fakeHub({ "m.gguf": GGUF });
  await using proxy = await fakeProxy();
  await programFetches({ source: HUB, hub: hub.url }, { HTTP_PROXY: proxy.url, NO_PROXY: "" });
  ok(proxy.asked.length >= hub.asked.length && hub.asked.length > 0, "all went through it");
});

Deno.test("the real program takes no proxy where NO_PROXY excepts everybody", async () => {
  await using hub = await fakeHub({ "m.gguf": GGUF });
  await using proxy = await fakeProxy();
  for (const [name, value] of [["NO_PROXY", "*"], ["no_proxy", "example.org, *"]] as const) {
    await programFetches({ source: HUB, hub: hub.url }, {
      HTTP_PROXY: proxy.url,
      http_proxy: proxy.url,
      [name]: value,
    });
  }
  deepEqual(proxy.asked, []);
  ok(hub.asked.length > 0);
});

Deno.test("the real program reaches TLS servers through a proxy's tunnel, with the site's authority", async () => {
  const now = Date.now();
  const site = { cluster: "test", validMs: 3_600_000, now };
  const root = await createRoot(site);
  const identity = { cluster: "test", role: "monitor", name: "web" } as const;
  const leaf = await createLeaf(root, { identity, hosts: ["127.0.0.1"], ...site });
  const caFile = await Deno.makeTempFile({ suffix: ".pem" });
  await Deno.writeTextFile(caFile, root.certificatePem);
  const tls = { cert: leaf.certificatePem, key: leaf.keyPem };
  try {
    await using web = await fakeWeb({ "/m.gguf": GGUF }, { tls });
    await using proxy = await fakeProxy();
    await programFetches(
      { source: `${web.url}/m.gguf`, ca_file: caFile },
      { HTTPS_PROXY: proxy.url, NO_PROXY: "", HEDDLE_FETCH_READ: caFile },
    );
    ok(web.asked.length > 0);
    ok(proxy.asked.length > 0);
    ok(proxy.asked.every((line) => `${web.url}` === line.replace("CONNECT ", "https://")));
  } finally {
    await Deno.remove(caFile);
  }
});
