import { deepEqual, equal } from "node:assert/strict";
import { redactLine, secretsOf } from "./redact_line.ts";

const LINES: readonly (readonly [string, string])[] = [
  ["nothing to see", "nothing to see"],
  ["key sk-heddle-replica-abcdefgh1234 used", "key [hidden] used"],
  ["HF_TOKEN=hf_abcdefgh12345678 x", "HF_TOKEN=[hidden] x"],
  ["args: --api-key s3cr3tsecret-value --port 1", "args: --api-key [hidden] --port 1"],
  [
    "server_args=ServerArgs(api_key='abcdef0123456789', port=1)",
    "server_args=ServerArgs(api_key='[hidden]', port=1)",
  ],
  ['{"hf_token": "abcdef0123456789"}', '{"hf_token": "[hidden]"}'],
  ["Authorization: Bearer abc.def", "Authorization: Bearer [hidden]"],
  ["api_key=None, port=8000", "api_key=None, port=8000"],
  ["max tokens 4096 of 8192", "max tokens 4096 of 8192"],
  ["num_batched_tokens=8192", "num_batched_tokens=8192"],
  ["my own is hunter2hunter2.", "my own is [hidden]."],
];

Deno.test("redactLine() hides secrets and nothing else", () => {
  for (const [line, hidden] of LINES) equal(redactLine(line, ["hunter2hunter2", ""]), hidden);
});

Deno.test("secretsOf() names the key and what the environment calls a secret", () => {
  const env = { MY_TOKEN: "t", AWS_SECRET_ACCESS_KEY: "s", HF_HOME: "/h", KEYBOARD: "us" };
  deepEqual(secretsOf({ apiKey: "k", env }), ["k", "t", "s"]);
});
