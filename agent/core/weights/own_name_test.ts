import { equal, match, notEqual } from "node:assert/strict";
import fc from "fast-check";
import {
  folderName,
  isFolderName,
  nameOf,
  ownName,
  partialName,
  wantOfPartial,
} from "./own_name.ts";

const QWEN = { source: "hf://Qwen/Qwen3-32B", include: [], exclude: [] };

Deno.test("folderName() says what it holds, and in which version", () => {
  match(folderName(QWEN, "0123456789abcdef0123"), /^qwen-qwen3-32b-[0-9a-f]{14}@0123456789ab$/);
  notEqual(ownName(QWEN), ownName({ ...QWEN, include: ["*.gguf"] }));
});

Deno.test("every name that is made is known as ours, whatever the source", () => {
  fc.assert(fc.property(fc.string(), fc.string({ minLength: 1 }), (source, text) => {
    const folder = folderName({ source, include: [text], exclude: [] }, "a1");
    equal(isFolderName(folder), true, folder);
    equal(nameOf(folder), ownName({ source, include: [text], exclude: [] }));
    equal(wantOfPartial(partialName(folder)), nameOf(folder));
  }));
});

Deno.test("isFolderName() takes nothing else for ours", () => {
  for (
    const name of ["qwen", "../a-00000000000000@a", "a-00000000000000", "a-00000000000000@a/b"]
  ) {
    equal(isFolderName(name), false, name);
  }
  equal(wantOfPartial(".partial-mine"), undefined);
});
