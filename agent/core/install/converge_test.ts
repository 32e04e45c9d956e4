import { equal } from "node:assert/strict";
import { type InstallFailure, nextInstall, retryAt, wantedKey } from "./converge.ts";

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
