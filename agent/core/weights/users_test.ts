import { equal } from "node:assert/strict";
import { NO_REVISION } from "@heddle/proto/revision";
import { aSpec } from "../shard/shard_fake.ts";
import type { Shard } from "../shard/shard.ts";
import { namerOf } from "./users.ts";

const FOLDER = "org-name-0123456789abcd@v1";

function shard(changes: Parameters<typeof aSpec>[0], state: Shard["state"]): Shard {
  return { spec: aSpec(changes), revision: NO_REVISION, apiKey: "", since: 0, state };
}

Deno.test("namerOf() finds a shard that was given a path in a folder, until it has ended", () => {
  const path = `/m/heddle/${FOLDER}/draft.gguf`;
  const running: Shard["state"] = { kind: "preparing", deadline: 1 };
  for (
    const changes of [{ source: path }, { args: ["--model-draft", path] }, { env: { A: path } }]
  ) {
    equal(namerOf(FOLDER, [shard(changes, running)]), aSpec().shardId);
    equal(namerOf("another", [shard(changes, running)]), undefined);
  }
  const stopped: Shard["state"] = { kind: "stopped", reason: "" };
  equal(namerOf(FOLDER, [shard({ source: path }, stopped)]), undefined);
});
