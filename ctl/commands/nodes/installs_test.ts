import { equal } from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { NodeViewSchema } from "@heddle/proto/gen/admin";
import { type EngineInstallSchema, InstallState } from "@heddle/proto/gen/engines";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { nodeListing } from "./list.ts";

function footer(...installs: MessageInitShape<typeof EngineInstallSchema>[]): string {
  const node = create(NodeViewSchema, { name: "n1", inventory: { installs: { installs } } });
  return nodeListing([node]).footer?.([node]) ?? "";
}

Deno.test("nodes say what becomes of engines that they are to have and have not", () => {
  const vllm = { name: "vllm", version: "0.33.0", wanted: true };
  equal(
    footer({
      ...vllm,
      state: InstallState.INSTALLING,
      progress: "downloading llama-b1.tar.gz: 62 %",
    }),
    "\nEngines on their way:\n" +
      "  n1: vllm 0.33.0 is installing: downloading llama-b1.tar.gz: 62 %\n",
  );
  equal(
    footer({
      ...vllm,
      state: InstallState.FAILED,
      reason: "driver_too_old",
      message: "it needs driver 525, the node has 470.256.02",
      retryInMs: 60_000n,
    }),
    "\nEngines on their way:\n  n1: vllm 0.33.0 could not be installed: driver_too_old: " +
      "it needs driver 525, the node has 470.256.02: tried again in 1m\n",
  );
  equal(footer({ ...vllm, state: InstallState.INSTALLED }), "");
  // What nobody wants any more is on no way.
  equal(footer({ ...vllm, wanted: false, state: InstallState.WAITING }), "");
});
