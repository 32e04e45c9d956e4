import { deepEqual, equal } from "node:assert/strict";
import { environmentFileOf, parseShow, pidIn } from "./show.ts";

Deno.test("parseShow() reads units in any order of properties", () => {
  const text = "MainPID=12\nEnvironmentFiles=/a/env (ignore_errors=no)\nId=x.service\n\n" +
    "Id=y.service\nMainPID=0\nDescription=a=b\n";
  deepEqual(parseShow(text), [
    { MainPID: "12", EnvironmentFiles: "/a/env (ignore_errors=no)", Id: "x.service" },
    { Id: "y.service", MainPID: "0", Description: "a=b" },
  ]);
  deepEqual(parseShow(""), []);
  deepEqual(parseShow("\n\nno property\n"), []);
});

Deno.test("environmentFileOf() finds the path, blanks and parentheses in it too", () => {
  equal(environmentFileOf({ EnvironmentFiles: "/a b (1)/env (ignore_errors=no)" }), "/a b (1)/env");
  equal(environmentFileOf({ EnvironmentFiles: "" }), undefined);
  equal(environmentFileOf({}), undefined);
});

Deno.test("pidIn() takes 0 and nonsense for no pid", () => {
  deepEqual(["12", "0", "", "-1", "1.5", "x", undefined].map(pidIn), [
    12,
    ...Array(6).fill(undefined),
  ]);
});
