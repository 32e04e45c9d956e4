import { deepEqual, equal, ok, throws } from "node:assert/strict";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { create, toBinary } from "@bufbuild/protobuf";
import { UsageRecordSchema } from "@heddle/proto/gen/tenancy";
import { isBackup, recordsOfBackup } from "./backup_records.ts";
import { parseRecorded, type RecordedArrival, recordedTrace } from "./recorded.ts";
import { replay } from "./replay.ts";

const T0 = Date.parse("2026-11-30T08:00:00Z");

const arrival = (seconds: number, model = "m"): RecordedArrival => ({
  ...{ atMs: T0 + 1_000 * seconds, model, promptTokens: 700, outputTokens: 100 },
});

function all(day: Parameters<typeof recordedTrace>[0], hours = 24) {
  const { trace, hours: found, requests } = recordedTrace(day, hours);
  const times: number[] = [];
  for (let second = 0; second < found * 3_600; second++) {
    for (let part = 0; part < 5; part++) {
      for (const _ of trace.arrivals(second + part / 5, 0.2)) times.push(second + part / 5);
    }
  }
  return { times, requests, trace };
}

Deno.test("a recording is read line by line, by either time, and a bad line is named", () => {
  const text =
    '{"at":"2026-11-30T08:00:00Z","model":"m","prompt_tokens":700,"completion_tokens":100}' +
    `\n\n{"at":${T0 + 1_500},"prompt_tokens":1,"completion_tokens":0,"more":"is left out"}\n`;
  deepEqual(parseRecorded(text), [
    arrival(0),
    { atMs: T0 + 1_500, model: "", promptTokens: 1, outputTokens: 0 },
  ]);
  throws(() => parseRecorded(`${text}no\n`), /line 4 of the recording.*Want \{"at"/);
  throws(
    () => parseRecorded('{"at":1,"prompt_tokens":-1,"completion_tokens":0}'),
    /line 1 of the recording: prompt_tokens: /,
  );
  throws(
    () => parseRecorded('{"at":"noon","prompt_tokens":1,"completion_tokens":0}'),
    /line 1.* at:/,
  );
});

Deno.test("every request of a recording is replayed once, when it came", () => {
  const arrivals = [arrival(3.45), arrival(0), arrival(100.99), arrival(7, "other")];
  const day = { arrivals, model: "m", stretch: 1, seed: 1 };
  const { times, requests, trace } = all(day);
  equal(requests, 3);
  deepEqual(times.map((time) => time.toFixed(1)), ["0.0", "3.4", "100.8"]);
  equal(trace.rate(30), 2 / 60);
  equal(trace.arrivals(-101, 1).length, 1, "the fleet settles on how it begins");
  throws(
    () => recordedTrace({ ...day, model: "gone" }, 24),
    /no requests of model "gone", but of m, other/,
  );
  throws(() => recordedTrace({ ...day, arrivals: [] }, 24), /it has no requests/);
});

Deno.test("of a longer recording the end is replayed", () => {
  const arrivals = [arrival(0), arrival(3_600), arrival(7_199)];
  equal(recordedTrace({ arrivals, model: "", stretch: 1, seed: 1 }, 1).requests, 2);
});

Deno.test("what was recorded faster keeps its rate over the longer time, and is the same again", () => {
  const arrivals = Array.from({ length: 100 }, (_, index) => arrival(index / 10));
  const day = { arrivals, model: "", stretch: 360, seed: 1 };
  const { times, requests } = all(day);
  equal(requests, 36_000);
  equal(times.length, requests);
  const last = Math.max(...times);
  ok(last > 3_500 && last <= 3_600 + 360, `the last after ${last} s`);
  const middle = times.filter((time) => time >= 1_200 && time < 2_400).length / 1_200;
  ok(Math.abs(middle - 10) < 1, `${middle} a second`);
  deepEqual(all(day).times, times);
});

Deno.test("a recorded hour is replayed on the fleet: as many requests, the same again", () => {
  const arrivals = Array.from({ length: 3_600 }, (_, index) => arrival(index));
  const run = () => {
    const { trace, hours } = recordedTrace({ arrivals, model: "m", stretch: 1, seed: 1 }, 1);
    return replay({ trace, hours, scaling: { min: 1, max: 2, target: 32 } });
  };
  const replayed = run();
  // What arrives in the last seconds ends after the hour, and what came before it ends in it.
  ok(Math.abs(replayed.requests - 3_600) < 20, `${replayed.requests}`);
  equal(replayed.refused, 0);
  deepEqual(run(), replayed);
});

Deno.test("a backup of control's store is read as a recording; another file is not", async () => {
  const directory = await Deno.makeTempDir();
  try {
    const file = join(directory, "backup");
    {
      using database = new DatabaseSync(file);
      database.exec(
        "CREATE TABLE usage_record (id TEXT PRIMARY KEY, at INTEGER, record BLOB) STRICT",
      );
      const insert = database.prepare("INSERT INTO usage_record VALUES (?, ?, ?)");
      const usage = { promptTokens: 700n, completionTokens: 100n };
      const record = create(UsageRecordSchema, { model: "m", durationMs: 2_000n, usage });
      insert.run("a", T0 + 2_000, toBinary(UsageRecordSchema, record));
      const refused = create(UsageRecordSchema, { model: "m", durationMs: 1n });
      insert.run("b", T0 + 3_000, toBinary(UsageRecordSchema, refused));
    }
    ok(isBackup(await Deno.readFile(file)));
    deepEqual(recordsOfBackup(file), [arrival(0)]);
    const empty = join(directory, "empty");
    new DatabaseSync(empty).close();
    throws(() => recordsOfBackup(empty), /Cannot read .*empty as a backup of control's store/);
    equal(isBackup(new TextEncoder().encode('{"at":1}')), false);
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
});
