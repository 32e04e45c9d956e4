import { deepEqual, equal, ok } from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { HeddleError } from "@heddle/proto/error";
import { type UsageRecord, UsageRecordSchema } from "@heddle/proto/gen/tenancy";
import { Ledger } from "./ledger.ts";
import { LedgerFolder, linesOf } from "./ledger_file.ts";

function record(n: number): UsageRecord {
  return create(UsageRecordSchema, {
    id: `record-0000000-${n}`,
    requestId: `r-${n}`,
    costMicro: 5n,
    usage: { promptTokens: 0n, completionTokens: 4n },
  });
}

interface Bench extends AsyncDisposable {
  readonly folder: string;
  readonly sent: UsageRecord[][];
  readonly recorded: UsageRecord[];
  readonly found: UsageRecord[];
  /** What control does; rejects what it does not take. */
  answer: () => Promise<void>;
  connected: boolean;
  open(bytesMax?: number): Promise<Ledger>;
}

async function bench(): Promise<Bench> {
  const folder = await Deno.makeTempDir();
  const it: Bench = {
    folder,
    sent: [],
    recorded: [],
    found: [],
    answer: () => Promise.resolve(),
    connected: true,
    async open(bytesMax = 2 ** 30) {
      const ledger = new Ledger({
        folder: new LedgerFolder(folder),
        bytesMax,
        connected: () => it.connected,
        send: async (records) => {
          it.sent.push([...records]);
          await it.answer();
        },
        onRecorded: (records) => it.recorded.push(...records),
        onFound: (records) => it.found.push(...records),
      });
      await ledger.load();
      return ledger;
    },
    [Symbol.asyncDispose]: () => Deno.remove(folder, { recursive: true }),
  };
  return it;
}

const ids = (records: readonly UsageRecord[]) => records.map(({ requestId }) => requestId);
const files = async (folder: string) =>
  (await Array.fromAsync(Deno.readDir(folder))).map(({ name }) => name);

Deno.test("records go to disk and to control, and leave the disk once control has them", async () => {
  await using it = await bench();
  const ledger = await it.open();
  ledger.add(record(1));
  ledger.add(record(2));
  await ledger.flush();
  deepEqual(ids(it.recorded), ["r-1", "r-2"]);
  // An explicit zero stays one.
  equal(it.recorded[0]?.usage?.promptTokens, 0n);
  equal(ledger.bytes, 0);
  deepEqual(await files(it.folder), []);
});

Deno.test("while control is away they wait, and a later run sends them with their own ids", async () => {
  await using it = await bench();
  it.connected = false;
  const first = await it.open();
  for (let n = 0; n < 3; n++) {
    first.add(record(n));
    await first.flush();
  }
  equal(it.sent.length, 0);
  ok(first.bytes > 0);
  it.connected = true;
  const second = await it.open();
  deepEqual(ids(it.found), ["r-0", "r-1", "r-2"]);
  await second.flush();
  deepEqual(it.recorded.map(({ id }) => id), [0, 1, 2].map((n) => `record-0000000-${n}`));
  deepEqual(await files(it.folder), []);
});

Deno.test("a control that fails gets the same records again", async () => {
  await using it = await bench();
  const ledger = await it.open();
  it.answer = () => Promise.reject(new HeddleError("unavailable", "not now"));
  ledger.add(record(1));
  await ledger.flush();
  equal(it.recorded.length, 0);
  it.answer = () => Promise.resolve();
  const again = await it.open();
  await again.flush();
  deepEqual(ids(it.recorded), ["r-1"]);
});

Deno.test("records that control refuses for good do not hold up those behind them", async () => {
  await using it = await bench();
  const ledger = await it.open();
  it.answer = () => Promise.reject(new HeddleError("invalid_input", "what is this"));
  ledger.add(record(1));
  await ledger.flush();
  equal(ledger.lost, 1);
  it.answer = () => Promise.resolve();
  ledger.add(record(2));
  await ledger.flush();
  deepEqual(ids(it.sent.at(-1) ?? []), ["r-2"]);
});

Deno.test("a thousand go in one call, and no more", async () => {
  await using it = await bench();
  const ledger = await it.open();
  for (let n = 0; n < 2_500; n++) ledger.add(record(n));
  await ledger.flush();
  deepEqual(it.sent.map(({ length }) => length), [1_000, 1_000, 500]);
});

Deno.test("a spool that is full drops what is new, and counts it", async () => {
  await using it = await bench();
  it.connected = false;
  const size = linesOf([{ record: record(1), endedAtMs: Date.now() }]).length;
  const ledger = await it.open(size * 3);
  for (let n = 0; n < 6; n++) {
    ledger.add(record(n));
    await ledger.flush();
  }
  ok(ledger.bytes <= size * 3);
  ok(ledger.lost >= 3, String(ledger.lost));
});

Deno.test("a file that a crash has cut is read up to the cut", async () => {
  await using it = await bench();
  it.connected = false;
  const ledger = await it.open();
  ledger.add(record(1));
  ledger.add(record(2));
  await ledger.flush();
  const [name] = await files(it.folder);
  const path = `${it.folder}/${name}`;
  const text = await Deno.readTextFile(path);
  for (let cut = text.length - 1; cut > 0; cut -= 37) {
    await Deno.writeTextFile(path, text.slice(0, cut));
    it.found.length = 0;
    await it.open();
    deepEqual(ids(it.found), ["r-1", "r-2"].slice(0, it.found.length), `cut at ${cut}`);
  }
});

Deno.test("a file of another version stays as it is", async () => {
  await using it = await bench();
  const path = `${it.folder}/usage-000000000000001-aaaaaaaa.jsonl`;
  await Deno.writeTextFile(path, '{"heddle_usage":2}\n{"x":1}\n');
  await Deno.writeTextFile(`${it.folder}/notes.txt`, "not ours");
  const ledger = await it.open();
  await ledger.flush();
  ok(ledger.bytes > 0);
  equal(await Deno.readTextFile(path), '{"heddle_usage":2}\n{"x":1}\n');
  equal((await files(it.folder)).length, 2);
});

Deno.test("a disk that takes nothing costs no record while control is there", async () => {
  await using it = await bench();
  await Deno.writeTextFile(`${it.folder}/file`, "");
  const ledger = new Ledger({
    folder: new LedgerFolder(`${it.folder}/file/below`),
    bytesMax: 2 ** 20,
    connected: () => true,
    send: (records) => {
      it.sent.push([...records]);
      return Promise.resolve();
    },
    onRecorded: () => {},
    onFound: () => {},
  });
  ledger.add(record(1));
  await ledger.flush();
  deepEqual(ids(it.sent.flat()), ["r-1"]);
  equal(ledger.lost, 0);
});
