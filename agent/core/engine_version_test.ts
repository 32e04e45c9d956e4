import { equal } from "node:assert/strict";
import { engineVersion } from "./engine_version.ts";

const OUTPUTS: readonly (readonly [string, string | undefined])[] = [
  ["0.28.1\n", "0.28.1"],
  [
    "INFO 11-29 12:00:01 [__init__.py:239] Automatically detected platform cuda.\n0.28.1rc1\n",
    "0.28.1rc1",
  ],
  ["vLLM 0.28.1+cu129\n", "0.28.1+cu129"],
  ["sim 0.1.0\n", "0.1.0"],
  [
    "version: 11069 (00dc8057)\nbuilt with cc (Debian 12.2.0) 12.2.0 for x86_64-linux-gnu\n",
    "11069",
  ],
  [
    "ggml_cuda_init: found 1 CUDA devices:\n  Device 0: NVIDIA H100, compute capability 9.0\nversion: 6000 (abc)\n",
    "6000",
  ],
  ["version: 0.6.0-dev (build 11434, commit 00dc805)\nbuilt with GNU 12.2.0 for Linux\n", "11434"],
  ["version: 0.6.0-dev (build 0, commit unknown)\nbuilt with GNU 12.2.0\n", "0.6.0-dev"],
  ["version: 0 (unknown)\n", "0"],
  ["/usr/lib/python3.12/site.py:12: UserWarning: old 1.2\n0.5.17.post2\n", "0.5.17.post2"],
  ["\u001b[32msglang\u001b[0m 0.5.17\r\n", "0.5.17"],
  ["llama-server version: b11069\n", undefined],
  ["b11069\n", "b11069"],
  ["Traceback (most recent call last):\nImportError: libcudart.so.13: cannot open\n", undefined],
  ["", undefined],
];

Deno.test("engineVersion() finds the version in what engines print", () => {
  for (const [output, version] of OUTPUTS) equal(engineVersion(output), version, output);
});

Deno.test("engineVersion() reads long words that are nearly a version in no time", () => {
  const words = "1.2" + "a".repeat(20_000);
  for (
    const text of [`${words}!`, `x ${words} !`, `version ${words}-!`, `1.2${"-a".repeat(9_000)}!`]
  ) {
    // What is read of it matters less than that it ends at all.
    const version = engineVersion(text);
    equal(version === undefined || text.includes(version), true);
  }
});
