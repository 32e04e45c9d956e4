import { deepEqual, equal } from "node:assert/strict";
import fc from "fast-check";
import { reencoded } from "./embeddings.ts";

const answer = (embedding: unknown) => ({
  object: "list",
  data: [{ object: "embedding", index: 0, embedding }],
  usage: { prompt_tokens: 1 },
});

Deno.test("reencoded() turns numbers into what official clients read, and back", () => {
  deepEqual(reencoded(answer([0.5, -0.25, 1]), "base64"), answer("AAAAPwAAgL4AAIA/"));
  deepEqual(reencoded(answer("AAAAPwAAgL4AAIA/"), "float"), answer([0.5, -0.25, 1]));
});

Deno.test("reencoded() leaves alone what is right already, and what it cannot read", () => {
  equal(reencoded(answer("AAAAPw=="), "base64"), undefined);
  equal(reencoded(answer([1]), "float"), undefined);
  equal(reencoded(answer("not base64!"), "float"), undefined);
  equal(reencoded(answer("AAA="), "float"), undefined);
  equal(reencoded(answer([["token", "vectors"]]), "base64"), undefined);
  equal(reencoded({ data: "x" }, "base64"), undefined);
  equal(reencoded(null, "base64"), undefined);
});

Deno.test("reencoded() there and back is the same for 32-bit floats", () => {
  fc.assert(fc.property(
    fc.array(fc.float({ noNaN: true }), { minLength: 1 }),
    (numbers) =>
      deepEqual(reencoded(reencoded(answer(numbers), "base64"), "float"), answer(numbers)),
  ));
});
