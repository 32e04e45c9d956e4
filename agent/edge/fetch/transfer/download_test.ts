import { equal, match, ok, rejects } from "node:assert/strict";
import { join } from "node:path";
import {
  decodeRequest,
  encodeRequest,
  type FetchRequestInput,
} from "../../../core/weights/documents.ts";
import { WeightsError } from "../../../core/weights/failure.ts";
import { type FakeHub, fakeHub, someBytes } from "../hub_fake.ts";
import { Http } from "../net/http.ts";
import { Progress } from "../progress.ts";
import type { RemoteFile } from "../remote/remote_file.ts";
import { download, type DownloadOptions } from "./download.ts";
import { PartFile } from "./part_file.ts";

const GIB = 1024 ** 3;
const [SIZE, CHUNK] = [300_000, 100_000];

interface Place extends AsyncDisposable {
  readonly hub: FakeHub;
  readonly folder: string;
  readonly file: RemoteFile;
  readonly progress: Progress;
  fetch(
    how: Pick<DownloadOptions, "disk" | "clock">,
    changes: Partial<FetchRequestInput>,
  ): ReturnType<typeof download>;
}

/** A file of three chunks, and where it is to go. */
async function open(): Promise<Place> {
  const hub = await fakeHub({ "m.gguf": someBytes(SIZE) });
  const folder = await Deno.makeTempDir();
  const progress = new Progress(() => {});
  const http = new Http({ token: undefined, tokenOrigin: "", caCerts: [], headMs: 30_000 });
  const url = `${hub.url}/org/name/resolve/main/m.gguf`;
  const file = { path: "m.gguf", url, size: SIZE, hash: undefined, identity: "one" };
  return {
    hub,
    folder,
    file,
    progress,
    fetch: (how, changes) =>
      download([file], {
        request: decodeRequest(encodeRequest({
          verb: "fetch",
          source: "",
          into: folder,
          chunk_bytes: CHUNK,
          ...changes,
        })),
        folder,
        http,
        progress,
        signal: new AbortController().signal,
        ...how,
      }),
    async [Symbol.asyncDispose]() {
      http[Symbol.dispose]();
      progress[Symbol.dispose]();
      await hub[Symbol.asyncDispose]();
      await Deno.remove(folder, { recursive: true });
    },
  };
}

Deno.test("download() ends when somebody else fills the disk, and keeps what it had", async () => {
  await using place = await open();
  const { hub, folder, file, progress } = place;
  hub.fault = ({ storage, range }) =>
    storage && range !== `bytes=0-${CHUNK - 1}` ? { kind: "trickle" } : undefined;
  const disk = {
    lookMs: 1,
    freeBytes: () => Promise.resolve((progress.receivedBytes < CHUNK ? 6 : 4) * GIB),
  };
  await rejects(
    place.fetch({ disk }, { connections: 1, reserve_bytes: 5 * GIB }),
    (error: unknown) => {
      ok(error instanceof WeightsError, String(error));
      equal(error.reason, "disk_full", error.message);
      match(error.message, /has 4\.0 GiB free: the fetch was stopped, and 5\.0 GiB stay free/);
      return true;
    },
  );
  const part = new PartFile(folder, file);
  equal(await part.open(), false, "it is not whole");
  ok(part.hadBytes >= CHUNK && part.hadBytes < SIZE, String(part.hadBytes));
  part.close();
});

Deno.test("download() holds all its connections together to the bandwidth that was set", async () => {
  await using place = await open();
  let now = 0;
  const clock = {
    now: () => now,
    wait: (ms: number) => Promise.resolve(void (now += ms)),
  };
  const limits = { connections: 3, bytes_per_second: 100_000 };
  const [fetched] = await place.fetch({ clock }, limits);
  equal(fetched?.size, SIZE);
  // 3 s, of which a tenth of a second is run ahead; parts of it need not come out even.
  ok(Math.abs(now - 2_900) < 1e-6, String(now));
});

Deno.test("download() fetches small files side by side, over no more connections than it may", async () => {
  const CONNECTIONS = 3;
  let [inFlight, most] = [0, 0];
  const full = Promise.withResolvers<void>();
  await using server = Deno.serve({ hostname: "127.0.0.1", port: 0, onListen() {} }, async () => {
    most = Math.max(most, ++inFlight);
    if (inFlight === CONNECTIONS) full.resolve();
    // Nobody is answered before so many wait: one after the other none would ever be.
    await full.promise;
    inFlight--;
    return new Response("{}", {
      status: 206,
      headers: { "content-range": "bytes 0-1/2" },
    });
  });
  const folder = await Deno.makeTempDir();
  using http = new Http({ token: undefined, tokenOrigin: "", caCerts: [], headMs: 10_000 });
  using progress = new Progress(() => {});
  const files = Array.from({ length: 40 }, (_, index) => ({
    path: `${index % 4}/${index}.json`,
    url: `http://127.0.0.1:${server.addr.port}/${index}`,
    size: 2,
    hash: undefined,
    identity: "one",
  }));
  try {
    const request = { verb: "fetch", source: "", into: folder, connections: CONNECTIONS } as const;
    const fetched = await download(files, {
      request: decodeRequest(encodeRequest({ ...request, tries: 1, reserve_bytes: 0 })),
      folder,
      http,
      progress,
      signal: new AbortController().signal,
    });
    equal(fetched.length, files.length);
    equal(most, CONNECTIONS);
    for (const { path } of files) equal(await Deno.readTextFile(join(folder, path)), "{}");
  } finally {
    full.resolve();
    await Deno.remove(folder, { recursive: true });
  }
});
