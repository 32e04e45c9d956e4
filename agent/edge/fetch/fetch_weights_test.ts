import { deepEqual, equal, match, ok, rejects } from "node:assert/strict";
import { join } from "node:path";
import type { FetchReport } from "../../core/weights/documents.ts";
import { decodeRequest, encodeRequest } from "../../core/weights/documents.ts";
import { WeightsError } from "../../core/weights/failure.ts";
import { fetchWeights } from "./fetch_weights.ts";
import { COMMIT, type FakeHub, fakeHub, someBytes } from "./hub_fake.ts";
import { Progress } from "./progress.ts";

const LARGE = someBytes(300_000);
const FILES = {
  "config.json": new TextEncoder().encode('{"model_type":"x"}'),
  "model-00001-of-00002.safetensors": LARGE,
  "model-00002-of-00002.safetensors": someBytes(100_000, 7),
  "tokenizer.json": new TextEncoder().encode("{}"),
  "empty.txt": new Uint8Array(),
};

interface Place extends AsyncDisposable {
  readonly hub: FakeHub;
  readonly into: string;
  readonly told: FetchReport[];
  fetch(changes?: Record<string, unknown>): ReturnType<typeof fetchWeights>;
}

async function open(files: Record<string, Uint8Array> = FILES): Promise<Place> {
  const hub = await fakeHub(files);
  const into = join(await Deno.makeTempDir(), "heddle");
  const told: FetchReport[] = [];
  return {
    hub,
    into,
    told,
    async fetch(changes = {}) {
      const request = decodeRequest(encodeRequest({
        verb: "fetch",
        source: "hf://org/name",
        into,
        hub: hub.url,
        connections: 4,
        chunk_bytes: 64_000,
        stall_ms: 400,
        retry_ms: 5,
        tries: 4,
        ...changes,
      }));
      using progress = new Progress((report) => told.push(report));
      return await fetchWeights(request, progress, new AbortController().signal);
    },
    async [Symbol.asyncDispose]() {
      await hub[Symbol.asyncDispose]();
      await Deno.remove(join(into, ".."), { recursive: true });
    },
  };
}

async function demandWhole(
  place: Place,
  folder: string,
  files: Record<string, Uint8Array> = FILES,
): Promise<void> {
  const names = [...Deno.readDirSync(join(place.into, folder))].map(({ name }) => name).sort();
  deepEqual(names, [".heddle-weights.json", ...Object.keys(files)].sort());
  for (const [name, bytes] of Object.entries(files)) {
    deepEqual(await Deno.readFile(join(place.into, folder, name)), bytes, name);
  }
}

function reasonIs(reason: string, words: RegExp) {
  return (error: unknown) => {
    ok(error instanceof WeightsError, String(error));
    equal(error.reason, reason);
    match(error.message, words);
    return true;
  };
}

Deno.test("fetchWeights() brings a repository whole, at one commit, and only once", async () => {
  await using place = await open();
  const done = await place.fetch();
  equal(done.version, COMMIT);
  equal(done.entry, "");
  equal(done.received_bytes, 400_000 + 18 + 2);
  match(done.folder, /^org-name-[0-9a-f]{14}@0123456789ab$/);
  await demandWhole(place, done.folder);
  const before = place.hub.asked.length;
  const again = await place.fetch();
  deepEqual(again, { ...done, received_bytes: 0 });
  equal(place.hub.asked.length, before, "what is there is not asked for");
});

Deno.test("fetchWeights() sends the token to the hub and to nobody else", async () => {
  await using place = await open();
  place.hub.token = "hf_secret";
  const file = join(place.into, "..", "token");
  await Deno.writeTextFile(file, "hf_secret\n");
  const done = await place.fetch({ token_file: file });
  await demandWhole(place, done.folder);
  for (const { storage, authorization } of place.hub.asked) {
    equal(authorization, storage ? undefined : "Bearer hf_secret");
  }
  await rejects(
    place.fetch({ source: "hf://org/name@v2" }),
    reasonIs("unauthorized", /token_file/),
  );
});

Deno.test("fetchWeights() ends in verified files whatever breaks on the way", async (t) => {
  const first = (
    kind: (n: number) => Parameters<FakeHub["fault"]>[0] extends never ? never
      : ReturnType<FakeHub["fault"]>,
  ) => {
    let count = 0;
    return (asked: Parameters<FakeHub["fault"]>[0]) => asked.storage ? kind(count++) : undefined;
  };
  const faults: Record<string, FakeHub["fault"]> = {
    "connections are dropped": first((n) =>
      n % 2 === 0 ? { kind: "drop", after: 9_000 } : undefined
    ),
    "bodies are truncated": first((n) => n < 6 ? { kind: "truncate", after: 20_000 } : undefined),
    "the server is busy": first((n) =>
      n < 4 ? { kind: "status", status: 503, headers: { "retry-after": "0" } } : undefined
    ),
    "it is asked too often": first((n) =>
      n < 3 ? { kind: "status", status: 429, headers: { "retry-after": "0" } } : undefined
    ),
    "a byte is another one": first((n) => n === 1 ? { kind: "corrupt" } : undefined),
    "ranges are not known": first(() => ({ kind: "no_ranges" })),
    "some connections only trickle": first((n) => n % 3 === 0 ? { kind: "trickle" } : undefined),
  };
  for (const [name, fault] of Object.entries(faults)) {
    await t.step(name, async () => {
      await using place = await open();
      place.hub.fault = fault;
      const done = await place.fetch();
      await demandWhole(place, done.folder);
    });
  }
});

Deno.test("fetchWeights() asks the hub again when an address of its storage has expired", async () => {
  await using place = await open();
  let expired = false;
  place.hub.fault = ({ storage, range }) => {
    if (storage && !expired && range?.startsWith("bytes=192000")) {
      expired = true;
      place.hub.expire();
    }
    return undefined;
  };
  const done = await place.fetch({ connections: 1 });
  ok(expired);
  await demandWhole(place, done.folder);
});

Deno.test("fetchWeights() gives up with a clear word and leaves nothing that counts", async (t) => {
  const cases: readonly (readonly [string, FakeHub["fault"], string, RegExp])[] = [
    [
      "gone",
      ({ storage }) => storage ? { kind: "drop", after: 0 } : undefined,
      "unreachable",
      /4 tries/,
    ],
    [
      "corrupt",
      ({ storage }) => storage ? { kind: "corrupt" } : undefined,
      "corrupt",
      /spoilt 2 times/,
    ],
    [
      "limited",
      ({ path }) => path.startsWith("/api") ? { kind: "status", status: 429 } : undefined,
      "rate_limited",
      /429/,
    ],
    [
      "gated",
      ({ path }) => path.startsWith("/api") ? { kind: "status", status: 403 } : undefined,
      "forbidden",
      /accept its terms/,
    ],
    [
      "missing",
      ({ path }) => path.startsWith("/api") ? { kind: "status", status: 404 } : undefined,
      "source_not_found",
      /404/,
    ],
    [
      "a pointer",
      ({ storage }) => storage ? { kind: "pointer" } : undefined,
      "corrupt",
      /Git LFS pointer/,
    ],
    [
      "trickling",
      ({ storage }) => storage ? { kind: "trickle" } : undefined,
      "unreachable",
      /next to nothing/,
    ],
  ];
  for (const [name, fault, reason, words] of cases) {
    await t.step(name, async () => {
      await using place = await open();
      place.hub.fault = fault;
      await rejects(place.fetch({ tries: name === "trickling" ? 2 : 4 }), reasonIs(reason, words));
      const whole = [...Deno.readDirSync(join(place.into, ".."))].flatMap(({ name }) =>
        name === "heddle" ? [...Deno.readDirSync(place.into)].map((each) => each.name) : []
      ).filter((each) => !each.startsWith("."));
      deepEqual(whole, []);
    });
  }
});

Deno.test("fetchWeights() refuses what the disk has no room for, with the numbers", async () => {
  await using place = await open();
  await rejects(
    place.fetch({ reserve_bytes: 2 ** 60 }),
    reasonIs("disk_full", /GiB free: 0\.0 GiB are still to be fetched, and .* stay free/),
  );
});

Deno.test("fetchWeights() takes one GGUF file of a repository that holds several", async () => {
  const files = { "q4.gguf": someBytes(9_000, 2), "q8.gguf": someBytes(9_000, 3) };
  await using place = await open(files);
  await rejects(place.fetch(), reasonIs("nothing_to_fetch", /2 GGUF models: .*q4\.gguf, q8\.gguf/));
  const done = await place.fetch({ source: "hf://org/name/q8.gguf" });
  equal(done.entry, "q8.gguf");
  await demandWhole(place, done.folder, { "q8.gguf": files["q8.gguf"] });
});

Deno.test("two that fetch the same wait for one download", async () => {
  await using place = await open();
  const both = await Promise.all([place.fetch(), place.fetch()]);
  equal(both[0].received_bytes + both[1].received_bytes, 400_020);
  equal(both[0].folder, both[1].folder);
});
