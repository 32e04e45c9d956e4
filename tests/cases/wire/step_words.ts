/** Steps that a case says in words, as requests with what must come of them. */
import { type CasePart, caseSchema } from "../case_schema.ts";
import { CaseFault } from "../expect/seen.ts";

const CHAT = { method: "POST", path: "/v1/chat/completions", body_file: "req/chat.json" };

/** A model that no engine of any case serves. */
const UNKNOWN_MODEL = { model: "fx-none", messages: [{ role: "user", content: "count" }] };

interface Reader {
  readonly form: RegExp;
  readonly part: (found: RegExpExecArray) => unknown;
}

const READERS: readonly Reader[] = [
  // "A", "B": any request, the same each time.
  { form: /^[A-Z]$/, part: () => ({ request: CHAT }) },
  {
    form: /^POST (req\/\S+) -> engine (\d{3})$/,
    part: ([, file, status]) => ({
      request: { ...CHAT, body_file: file },
      upstream: [{ status: Number(status), body: { error: { message: "no", code: 400 } } }],
      expect: { status: Number(status) },
    }),
  },
  {
    form: /^POST unknown model -> (\d{3})$/,
    part: ([, status]) => ({
      request: { ...CHAT, body_file: undefined, json: UNKNOWN_MODEL },
      expect: { status: Number(status) },
    }),
  },
  {
    form: /^engine hang -> (\d{3})$/,
    part: ([, status]) => ({
      request: CHAT,
      upstream: [{ bytes: 0, end: "hang" }],
      expect: { status: Number(status) },
    }),
  },
  {
    form: /^POST (req\/\S+)$/,
    part: ([, file]) => ({ request: { ...CHAT, body_file: file } }),
  },
  {
    form: /^POST own key with (\w+) (\[.*\])$/,
    part: ([, member, value]) => keyChange("POST", "/v1/keys", `{"${member}":${value}}`),
  },
  {
    form: /^PATCH self (\{.*\})$/,
    part: ([, json]) => keyChange("PATCH", "/v1/keys/self", json ?? ""),
  },
];

function keyChange(method: string, path: string, json: string): unknown {
  // "1e9" and the like: what stands there is JSON.
  return { request: { method, path, json: JSON.parse(json) } };
}

const partSchema = caseSchema.pick({ request: true, upstream: true, expect: true });

/** Throws `CaseFault` for words that only a person can act out. */
export function stepOfWords(words: string): CasePart {
  for (const { form, part } of READERS) {
    const found = form.exec(words);
    if (found !== null) return partSchema.parse(part(found));
  }
  throw new CaseFault(`only a person can do: ${words}`);
}
