import { equal, rejects } from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { HeddleError } from "@heddle/proto/error";
import { NodeAnswerSchema } from "@heddle/proto/gen/weights";
import type { NodeMessage } from "./node_streams.ts";
import { NodeRequests } from "./node_requests.ts";

function setUp() {
  const sent: { node: string; id: string }[] = [];
  const requests = new NodeRequests((node, message: NodeMessage) => {
    if (message.case !== "nodeRequest") throw new Error(`sent ${message.case}`);
    sent.push({ node, id: message.value.requestId ?? "" });
  });
  return { sent, requests };
}

const ASK = { case: "removeWeights", value: "f" } as const;

Deno.test("ask() takes the answer of the node that was asked, and of no other", async () => {
  const { sent, requests } = setUp();
  const asked = requests.ask("n1", ASK, 10_000);
  const requestId = sent[0]?.id ?? "";
  requests.accept("n2", create(NodeAnswerSchema, { requestId, reason: "forged" }));
  requests.accept("n1", create(NodeAnswerSchema, { requestId: "other", reason: "stale" }));
  requests.accept("n1", create(NodeAnswerSchema, { requestId, message: "done" }));
  equal((await asked).message, "done");
});

Deno.test("ask() ends when the node is gone, and when it says nothing", async () => {
  const { requests } = setUp();
  const gone = requests.ask("n1", ASK, 10_000);
  requests.nodeGone("n2");
  requests.nodeGone("n1");
  const is = (code: string) => (error: unknown) =>
    error instanceof HeddleError && error.code === code;
  await rejects(gone, is("unavailable"));
  await rejects(requests.ask("n1", ASK, 20), is("timeout"));
});
