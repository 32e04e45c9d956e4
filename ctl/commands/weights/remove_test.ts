import { deepEqual, equal, match } from "node:assert/strict";
import { WeightsService } from "@heddle/proto/gen/weights";
import { type Ran, withControl } from "../../testing/app_fake.ts";

const of = (node: string, source: string, version: string, models: readonly string[]) => ({
  node,
  weights: { want: { source, version }, folder: `${version}-folder`, sizeBytes: 3_145_728n },
  models: [...models],
});

const FETCHED = [
  of("n1", "hf://org/chat", "v1", ["chat"]),
  of("n1", "hf://org/code", "v2", ["code", "helper"]),
  of("n1", "hf://org/code", "v3", ["code", "helper"]),
  of("n2", "hf://org/other", "v4", []),
];

/** Answers each line; `removed` is what control was told to remove. */
async function tried(
  lines: readonly (readonly string[])[],
  ask?: (question: string) => Promise<boolean>,
): Promise<{ readonly ran: readonly Ran[]; readonly removed: readonly string[] }> {
  const removed: string[] = [];
  const ran: Ran[] = [];
  await withControl((router) =>
    router.service(WeightsService, {
      listWeights: () => ({ weights: FETCHED }),
      removeWeights({ node, folder }) {
        removed.push(`${node}/${folder}`);
        return { freedBytes: 3_145_728n };
      },
    }), async (run) => {
    for (const line of lines) ran.push(await run(["weights", "remove", ...line], { ask }));
  });
  return { ran, removed };
}

Deno.test("weights remove: by model, source or folder, whatever the list shows", async () => {
  const { ran, removed } = await tried([
    ["n1", "chat", "--yes"],
    ["n1", "hf://org/chat", "--yes"],
    ["n1", "v3-folder", "--yes"],
    // Control says whether there is such a node, or such a folder.
    ["n9", "chat", "--yes"],
    // What a fetch of before left behind is on no list.
    ["n1", ".partial-chat-0123456789abcd@v0", "--yes"],
  ]);
  deepEqual(removed, [
    "n1/v1-folder",
    "n1/v1-folder",
    "n1/v3-folder",
    "n9/chat",
    "n1/.partial-chat-0123456789abcd@v0",
  ]);
  equal(ran[0]?.out, "Removed v1-folder on n1: 3.0 MiB freed\n");
});

Deno.test("weights remove: what is not there, or may be several, is refused before it asks", async () => {
  const { ran, removed } = await tried([["n1", "other"], ["n1", "helper"], ["n2", "chat"]], () => {
    throw new Error("asked");
  });
  deepEqual(removed, []);
  match(
    ran[0]?.err ?? "",
    /n1 has fetched no "other"\. What it has: hf:\/\/org\/chat \(3\.0 MiB, of chat\); /,
  );
  match(
    ran[1]?.err ?? "",
    /may be any of several on n1\. Name the folder: v2-folder, v3-folder\n$/,
  );
  match(
    ran[2]?.err ?? "",
    /n2 has fetched no "chat"\. What it has: hf:\/\/org\/other \(3\.0 MiB\)\n$/,
  );
});

Deno.test("weights remove: asks with what a person knows it by", async () => {
  const asked: string[] = [];
  const answered = await tried([["n1", "v2-folder"], ["n1", "chat"]], (question) => {
    asked.push(question);
    return Promise.resolve(question.includes("chat"));
  });
  deepEqual(asked, [
    "Remove hf://org/code (3.0 MiB, of code, helper) on n1? Fetching it again takes time.",
    "Remove hf://org/chat (3.0 MiB, of chat) on n1? Fetching it again takes time.",
  ]);
  deepEqual(answered.removed, ["n1/v1-folder"]);
  match(answered.ran[0]?.err ?? "", /not confirmed/);
});
