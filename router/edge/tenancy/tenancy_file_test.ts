import { deepEqual, equal, ok } from "node:assert/strict";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { WatchResponseSchema } from "@heddle/proto/gen/router";
import { FoldedTenancy } from "./folded_tenancy.ts";
import { TenancyFile } from "./tenancy_file.ts";

type Message = Exclude<MessageInitShape<typeof WatchResponseSchema>, { $typeName: string }>;

const said = (message: Message) => create(WatchResponseSchema, message);
const keys = (...ids: readonly string[]) => ids.map((id) => ({ id, name: id }));

/** What a router that starts with this folder knows. */
async function loaded(folder: string) {
  const folded = new FoldedTenancy();
  let frames = 0;
  for await (const saved of new TenancyFile(folder).load()) {
    folded.take(saved);
    frames++;
  }
  const messages = [...folded.messages(Date.now())];
  return {
    frames,
    keys: messages.flatMap((message) => message.keys.map(({ id }) => id)),
    scopes: messages.flatMap(({ scopes }) => scopes),
  };
}

async function inFolder(work: (folder: string) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir();
  try {
    await work(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

Deno.test("a snapshot and what changed since are there again, and nobody else may read them", () =>
  inFolder(async (folder) => {
    const file = new TenancyFile(folder);
    file.save(said({ snapshot: true, keys: keys("a", "b") }), 0);
    file.save(said({ snapshot: true, snapshotEnd: true, keys: keys("c") }), 0);
    file.save(said({ removedKeys: ["b"] }), 0);
    file.save(said({ keys: keys("d") }), 0);
    await file.flush();
    deepEqual((await loaded(folder)).keys, ["a", "c", "d"]);
    equal(((await Deno.stat(`${folder}/tenancy.bin`)).mode ?? 0) & 0o777, 0o600);
    file.save(said({ snapshot: true, snapshotEnd: true, keys: keys("e") }), 0);
    await file.flush();
    deepEqual((await loaded(folder)).keys, ["e"]);
  }));

Deno.test("a snapshot that broke off leaves what there was", () =>
  inFolder(async (folder) => {
    const file = new TenancyFile(folder);
    file.save(said({ snapshot: true, snapshotEnd: true, keys: keys("a") }), 0);
    file.save(said({ snapshot: true, keys: keys("b") }), 0);
    file.forgetPending();
    await file.flush();
    deepEqual((await loaded(folder)).keys, ["a"]);
  }));

Deno.test("a file that is cut anywhere is read up to the cut, and one of another version not at all", () =>
  inFolder(async (folder) => {
    const file = new TenancyFile(folder);
    file.save(said({ snapshot: true, snapshotEnd: true, keys: keys("a") }), 0);
    for (const id of ["b", "c"]) file.save(said({ keys: keys(id) }), 0);
    await file.flush();
    const path = `${folder}/tenancy.bin`;
    const whole = await Deno.readFile(path);
    for (let cut = whole.length; cut >= 0; cut -= 5) {
      await Deno.writeFile(path, whole.slice(0, cut));
      const { keys: known, frames } = await loaded(folder);
      deepEqual(known, ["a", "b", "c"].slice(0, frames));
    }
    await Deno.writeTextFile(path, "heddle-tenancy 9\nwhatever");
    deepEqual((await loaded(folder)).keys, []);
  }));

Deno.test("changes that outgrow the snapshot are folded into it", () =>
  inFolder(async (folder) => {
    const file = new TenancyFile(folder);
    file.save(said({ snapshot: true, snapshotEnd: true, keys: keys("a") }), Date.now());
    const long = "x".repeat(1_000_000);
    for (let n = 0; n < 20; n++) {
      file.save(said({ keys: [{ id: "b", name: `${n}${long}` }], removedKeys: ["a"] }), Date.now());
    }
    await file.flush();
    ok((await Deno.stat(`${folder}/tenancy.bin`)).size < 12_000_000);
    deepEqual((await loaded(folder)).keys, ["b"]);
  }));

Deno.test("a budget that was kept refills when it would have", () =>
  inFolder(async (folder) => {
    const file = new TenancyFile(folder);
    const budget = { spentMicro: 5n, exhausted: true, refillMs: 60_000n };
    const message = { snapshot: true, snapshotEnd: true, scopes: [{ id: "s", budget }] };
    file.save(said(message), Date.now() - 45_000);
    await file.flush();
    const [scope] = (await loaded(folder)).scopes;
    const left = Number(scope?.budget?.refillMs);
    ok(left > 5_000 && left <= 15_000, String(left));
    file.save(said({ ...message, snapshot: true }), Date.now() - 600_000);
    await file.flush();
    // Over long ago: at once, and not never.
    equal((await loaded(folder)).scopes[0]?.budget?.refillMs, 1n);
  }));
