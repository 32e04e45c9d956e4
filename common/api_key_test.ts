import { equal, match, notEqual, throws } from "node:assert/strict";
import { Buffer } from "node:buffer";
import fc from "fast-check";
import { apiKeyFrom, apiKeyHash, isApiKey, shownApiKey } from "./api_key.ts";

const secret = fc.uint8Array({ minLength: 32, maxLength: 32 });

Deno.test("apiKeyFrom() makes different keys of one form from different bytes", () => {
  fc.assert(fc.property(secret, secret, (a, b) => {
    const key = apiKeyFrom(a);
    match(key, /^sk-heddle-[0-9A-Za-z]{49}$/);
    equal(isApiKey(key), true);
    equal(apiKeyFrom(b) === key, Buffer.from(a).equals(Buffer.from(b)));
  }));
  equal(
    apiKeyFrom(new Uint8Array(32)),
    "sk-heddle-0000000000000000000000000000000000000000000" + "4T0xUa",
  );
  throws(() => apiKeyFrom(new Uint8Array(31)), RangeError);
});

Deno.test("isApiKey() notices every wrong, missing, doubled and swapped character", () => {
  fc.assert(fc.property(secret, fc.nat(58), fc.string({ minLength: 1 }), (bytes, at, text) => {
    const key = apiKeyFrom(bytes);
    const char = key.charAt(at);
    const wrong = char === "x" ? "y" : "x";
    equal(isApiKey(key.slice(0, at) + wrong + key.slice(at + 1)), false);
    equal(isApiKey(key.slice(0, at) + key.slice(at + 1)), false);
    equal(isApiKey(key.slice(0, at) + char + key.slice(at)), false);
    equal(isApiKey(text + key), false);
    equal(isApiKey(key + text), false);
    const next = key.charAt(at + 1);
    const swapped = key.slice(0, at) + next + char + key.slice(at + 2);
    equal(isApiKey(swapped), swapped === key);
  }));
});

Deno.test("isApiKey() refuses what only looks like a key", () => {
  const key = apiKeyFrom(new Uint8Array(32).fill(255));
  const strangers = [
    "",
    "sk-heddle-",
    "' OR '1'='1",
    "%".repeat(59),
    "\0".repeat(59),
    key.toLowerCase(),
    key.replace("sk-heddle-", "sk-Heddle-"),
    `sk-heddle-${"z".repeat(43)}000000`,
    "é".repeat(59),
    key.repeat(2),
    "a".repeat(65_536),
  ];
  for (const text of strangers) {
    equal(isApiKey(text), false, text.slice(0, 60));
    equal(shownApiKey(text), "");
  }
});

Deno.test("shownApiKey() tells little, apiKeyHash() tells keys apart that differ in one character", () => {
  const [a, b] = [new Uint8Array(32), new Uint8Array(32)];
  b[31] = 1;
  const [first, second] = [apiKeyFrom(a), apiKeyFrom(b)];
  equal(shownApiKey(first), "sk-heddle-000000");
  equal(shownApiKey(second), shownApiKey(first));
  const hex = (key: string) => Buffer.from(apiKeyHash(key)).toString("hex");
  equal(hex(first).length, 64);
  notEqual(hex(first), hex(second));
});
