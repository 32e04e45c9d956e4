import { deepEqual, equal, rejects } from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { HeddleError } from "@heddle/proto/error";
import { NodeAnswerSchema } from "@heddle/proto/gen/weights";
import { inspectPath } from "./inspect_on.ts";

const WANT = { source: "/models/m", include: [], exclude: [], version: "" };

/** Nodes that have the path, have it not, or are away. */
function asking(nodes: Readonly<Record<string, "has" | "has_not" | "away">>) {
  const asked: string[] = [];
  return {
    asked,
    ask: (node: string) => {
      asked.push(node);
      const how = nodes[node];
      if (how === "away") return Promise.reject(new HeddleError("unavailable", `${node} is away`));
      const value = how === "has" ? { weightBytes: 9n } : { note: "cannot be read on this node" };
      return Promise.resolve(create(NodeAnswerSchema, { answer: { case: "facts", value } }));
    },
  };
}

Deno.test("inspectPath() finds the node that can read the path, whoever else cannot or is away", async () => {
  const requests = asking({ a: "has_not", b: "away", c: "has" });
  const { node, facts } = await inspectPath(requests, ["a", "b", "c"], WANT);
  deepEqual([node, facts.weightBytes, requests.asked], ["c", 9n, ["a", "b", "c"]]);
});

Deno.test("inspectPath() refuses a path that nobody can read, and makes nothing up of it", async () => {
  const refuses = (nodes: Parameters<typeof asking>[0]) =>
    inspectPath(asking(nodes), Object.keys(nodes), WANT);
  await rejects(refuses({ a: "has_not" }), (error: unknown) => {
    equal(error instanceof HeddleError && error.code, "not_found");
    return /\/models\/m: node "a" cannot read it\. .* model_dirs$/.test(String(error));
  });
  await rejects(refuses({ a: "has_not", b: "has_not" }), /none of 2 nodes can read it/);
  await rejects(refuses({ a: "away", b: "has_not" }), /none of 2 nodes can read it/);
  await rejects(refuses({ a: "away" }), /a is away/);
});
