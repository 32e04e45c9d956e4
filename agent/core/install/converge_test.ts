import { deepEqual, equal } from "node:assert/strict";
import { aShard, PROCESS } from "../shard/shard_fake.ts";
import {
  type InstallFailure,
  nextInstall,
  removable,
  retryAt,
  unusedSince,
  wantedKey,
} from "./converge.ts";
import { cudaOfDriver } from "./cuda.ts";
import { enginesInUse } from "./engines_in_use.ts";

const LLAMA = { name: "llamacpp", version: "b1", releases: "https://r", index: "", packages: [] };
const VLLM = { name: "vllm", version: "0.28.1", releases: "", index: "", packages: [] };
const failed = (reason: InstallFailure["reason"], count: number): InstallFailure => ({
  reason,
  message: "m",
  count,
  at: 0,
});

Deno.test("retryAt() doubles from one minute to ten, and never for what cannot be", () => {
  equal(retryAt(failed("unreachable", 1)), 60_000);
  equal(retryAt(failed("unreachable", 2)), 120_000);
  equal(retryAt(failed("does_not_run", 9)), 600_000);
  equal(retryAt(failed("unsupported", 1)), undefined);
});

Deno.test("nextInstall() takes what is missing and not failing, one at a time", () => {
  const none = { installed: new Set<string>(), failures: new Map<string, InstallFailure>() };
  equal(nextInstall([LLAMA, VLLM], none, 0), LLAMA);
  const there = { ...none, installed: new Set(["llamacpp-b1"]) };
  equal(nextInstall([LLAMA, VLLM], there, 0), VLLM);
  const failing = { ...none, failures: new Map([[wantedKey(LLAMA), failed("unreachable", 1)]]) };
  equal(nextInstall([LLAMA], failing, 59_999), undefined);
  equal(nextInstall([LLAMA], failing, 60_000), LLAMA);
  // Another mirror is another try.
  equal(nextInstall([{ ...LLAMA, releases: "https://m" }], failing, 0)?.releases, "https://m");
});

Deno.test("cudaOfDriver() is the newest CUDA that a driver runs", () => {
  equal(cudaOfDriver("580.65.06"), 13);
  equal(cudaOfDriver("550.163.01"), 12);
  equal(cudaOfDriver("470.256.02"), 11);
  equal(cudaOfDriver("390.157"), undefined);
  equal(cudaOfDriver(""), undefined);
  equal(cudaOfDriver("[Unknown Error]"), undefined);
});

const OLD = { name: "llamacpp", version: "b1", folder: "/opt/e/llamacpp-b1" };
const NEW = { name: "llamacpp", version: "b2", folder: "/opt/e/llamacpp-b2" };
const NOTHING_USED = { programs: [], engines: new Set<string>() };

Deno.test("a version goes ten minutes after the last that wanted or used it", () => {
  const look = (now: number, how: Partial<Parameters<typeof unusedSince>[0]> = {}) =>
    unusedSince({ installed: [OLD, NEW], wanted: [NEW], inUse: NOTHING_USED, ...how }, before, now);
  let before: ReadonlyMap<string, number> = new Map();
  before = look(0);
  deepEqual([...before], [["llamacpp-b1", 0]]);
  deepEqual(removable(before, 599_999), []);
  // Used for a moment: the time begins anew.
  before = look(300_000, {
    inUse: { ...NOTHING_USED, programs: ["/opt/e/llamacpp-b1/build/bin/llama-server"] },
  });
  deepEqual([...before], []);
  before = look(400_000);
  deepEqual(removable(before, 999_999), []);
  deepEqual(removable(before, 1_000_000), ["llamacpp-b1"]);
});

Deno.test("nothing goes that may be used, and nothing while control has not said what it wants", () => {
  const look = (how: Partial<Parameters<typeof unusedSince>[0]>) => [
    ...unusedSince(
      { installed: [OLD, NEW], wanted: [], inUse: NOTHING_USED, ...how },
      new Map(),
      0,
    ).keys(),
  ];
  deepEqual(look({}), ["llamacpp-b1", "llamacpp-b2"]);
  deepEqual(look({ wanted: undefined }), []);
  deepEqual(look({ inUse: { programs: [], engines: new Set(["llamacpp"]) } }), []);
  // A folder whose name begins as another's is another one.
  const long = { ...NEW, version: "b11", folder: "/opt/e/llamacpp-b11" };
  deepEqual(
    look({
      installed: [OLD, long],
      inUse: { programs: ["/opt/e/llamacpp-b11/llama-server"], engines: new Set() },
    }),
    ["llamacpp-b1"],
  );
});

Deno.test("enginesInUse() knows a program by its path, and takes all of an engine where it does not", () => {
  const ready = aShard("ready");
  const known = {
    ...ready,
    state: { ...ready.state, processes: [{ ...PROCESS, program: "/opt/e/llamacpp-b1/server" }] },
  };
  deepEqual(enginesInUse([known]), {
    programs: ["/opt/e/llamacpp-b1/server"],
    engines: new Set(),
  });
  deepEqual(enginesInUse([ready]), { programs: [], engines: new Set(["sim"]) });
  deepEqual(enginesInUse([aShard("preparing")]), { programs: [], engines: new Set(["sim"]) });
  deepEqual(enginesInUse([aShard("failed")]), { programs: [], engines: new Set() });
});
