import { deepEqual, equal, notEqual, ok } from "node:assert/strict";
import xxhash from "xxhash-wasm";
import { parseRequest } from "../request/request.ts";
import { matchRoute } from "../request/route.ts";
import { blocksOf, type PromptBlocks } from "./blocks.ts";

const { h64Raw: hash } = await xxhash();

interface Turn {
  readonly role: string;
  readonly content: unknown;
}

function blocks(body: Record<string, unknown>, { salt = "t", path = "/v1/chat/completions" } = {}) {
  const match = matchRoute("POST", path);
  if (match.kind !== "route" || match.route.kind !== "inference") throw new Error(path);
  const step = parseRequest(
    match.route,
    new TextEncoder().encode(JSON.stringify({ model: "m", ...body })),
    { controlFields: "strip", mediaUrls: { fetch: "data", hosts: [] } },
  );
  if (step.kind === "end") throw new Error(step.outcome.reason);
  const prompt = step.value.conversation();
  return prompt && blocksOf(prompt, { hash, salt, data: prompt.data });
}

function chat(turns: readonly Turn[], more: Record<string, unknown> = {}): PromptBlocks {
  const found = blocks({ messages: turns, ...more });
  if (found === undefined) throw new Error("A chat has blocks");
  return found;
}

function common(a: PromptBlocks, b: PromptBlocks): number {
  const differ = a.hashes.findIndex((each, index) => each !== b.hashes[index]);
  return differ < 0 ? a.hashes.length : differ;
}

const LONG = "All work and no play makes Jack a dull boy. ".repeat(60);
const SYSTEM: Turn = { role: "system", content: LONG };
const FIRST: Turn = { role: "user", content: `What of that? ${LONG}` };
const LATER: readonly Turn[] = [{ role: "assistant", content: "Less." }, {
  role: "user",
  content: "Why?",
}];

Deno.test("a conversation's next turn begins with the blocks of the one before", () => {
  const one = chat([SYSTEM, FIRST]);
  const two = chat([SYSTEM, FIRST, ...LATER]);
  ok(one.hashes.length > 20);
  equal(common(one, two), one.hashes.length - 1);
  equal(one.head, two.head);
});

Deno.test("roles, tools, tenants and every byte to the last make prompts differ", () => {
  const one = chat([SYSTEM, FIRST]);
  equal(common(one, chat([{ ...SYSTEM, role: "user" }, FIRST])), 0);
  equal(common(one, chat([SYSTEM, FIRST], { tools: [{ type: "function" }] })), 0);
  const other = blocks({ messages: [SYSTEM, FIRST] }, { salt: "u" });
  ok(other !== undefined && common(one, other) === 0 && other.head !== one.head);
  const last = chat([SYSTEM, { ...FIRST, content: `What of that? ${LONG}!` }]);
  equal(common(one, last), one.hashes.length - 1);
  notEqual(one.hashes.at(-1), last.hashes.at(-1));
  // What the same operator's conversations have in common is no reason to be at one place.
  notEqual(chat([SYSTEM, { role: "user", content: "Another" }]).head, one.head);
});

Deno.test("images tell prompts apart by all of their bytes, and count as little text", () => {
  const picture = (end: string): Turn => ({
    role: "user",
    content: [{
      type: "image_url",
      image_url: { url: `data:image/png;base64,${"A".repeat(100_000)}${end}` },
    }],
  });
  const one = chat([SYSTEM, picture("B")]);
  ok(one.hashes.length < 20);
  deepEqual(one, chat([SYSTEM, picture("B")]));
  notEqual(one.head, chat([SYSTEM, picture("C")]).head);
  notEqual(one.hashes.at(-1), chat([SYSTEM, picture("C")]).hashes.at(-1));
});

Deno.test("every route with a prompt has blocks, and what has none has none", () => {
  ok(blocks({ prompt: LONG }, { path: "/v1/completions" }) !== undefined);
  ok(blocks({ prompt: [[1, 2, 3]] }, { path: "/v1/completions" }) !== undefined);
  ok(blocks({ input: LONG, instructions: "x" }, { path: "/v1/responses" }) !== undefined);
  ok(blocks({ messages: [FIRST], system: LONG }, { path: "/v1/messages" }) !== undefined);
  equal(blocks({ input: LONG }, { path: "/v1/embeddings" }), undefined);
  ok(blocks({ messages: "nonsense" }) !== undefined);
  ok(blocks({}) !== undefined);
});

Deno.test("data: URLs in the text of a turn count by their contents, wherever the turn ends", () => {
  const image = (letter: string) => `Look: data:image/png;base64,${letter.repeat(2_000)}`;
  const turn = (letter: string): Turn => ({ role: "user", content: image(letter) });
  equal(
    common(chat([SYSTEM, turn("A")]), chat([SYSTEM, turn("A")])),
    chat([SYSTEM, turn("A")]).hashes.length,
  );
  notEqual(chat([SYSTEM, turn("A")]).head, chat([SYSTEM, turn("B")]).head);
  equal(chat([SYSTEM, turn("A")]).hashes.length, chat([SYSTEM, turn("B")]).hashes.length);
});
