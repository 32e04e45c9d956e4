import { deepEqual, throws } from "node:assert/strict";
import { create } from "@bufbuild/protobuf";
import { ReplicaViewSchema } from "@heddle/proto/gen/admin";
import { ReplicaState } from "@heddle/proto/gen/types";
import { subjectOf } from "./subject.ts";

const replica = (replicaId: string, profile: string, state = ReplicaState.READY) =>
  create(ReplicaViewSchema, { replicaId, profile, state });
const asked = (parts: { profile?: string; replica?: string } = {}) => ({
  model: "m",
  profile: undefined,
  replica: undefined,
  ...parts,
});

Deno.test("subjectOf() measures all replicas where they are of one profile, and says whose it is", () => {
  const all = [replica("b", "p"), replica("a", "p"), replica("c", "p", ReplicaState.STARTING)];
  deepEqual(subjectOf(all, asked()), {
    replicaIds: ["a", "b"],
    only: undefined,
    words: "all 2 replicas of profile p",
  });
  deepEqual(subjectOf([replica("b", "p"), replica("a", "q")], asked()).replicaIds, []);
});

Deno.test("subjectOf() takes one replica where a profile or a replica is asked for", () => {
  const all = [replica("b", "p"), replica("a", "q"), replica("c", "p")];
  deepEqual(subjectOf(all, asked({ profile: "p" })), {
    replicaIds: ["b"],
    only: "b",
    words: "replica b of profile p",
  });
  deepEqual(subjectOf(all, asked({ replica: "c" })).only, "c");
});

Deno.test("subjectOf() says what is ready when nothing of what was asked for is", () => {
  const all = [replica("b", "p"), replica("a", "q", ReplicaState.DRAINING)];
  throws(
    () => subjectOf(all, asked({ replica: "a" })),
    /called "a" of m is ready; these are: b \(p\)/,
  );
  throws(() => subjectOf(all, asked({ profile: "q", replica: "b" })), /"b" of profile "q" of m/);
  throws(
    () => subjectOf([], asked()),
    /^HeddleError: No replica of m is ready: it has none\. Why: heddle explain m$/,
  );
  throws(
    () => subjectOf(all.slice(1), asked({ profile: "p" })),
    /^HeddleError: No replica of profile "p" of m is ready: a is draining\. Why: heddle explain m$/,
  );
});
