import { equal, match, ok } from "node:assert/strict";
import { sha256, type TokenHolder } from "../../identity/operators.ts";
import { Sessions } from "./session.ts";

const ANN = { name: "ann", role: "operator" } as const;

async function setUp() {
  const tokens = new Map<string, TokenHolder>([[await sha256("secret"), ANN]]);
  const clock = { now: 1_700_000_000_000 };
  const options = { tokens: () => tokens, now: () => clock.now };
  const sessions = new Sessions({ ...options, secret: "key" });
  const cookie = async () => ((await sessions.open("secret")) ?? "").split(";")[0] ?? "";
  return { tokens, clock, options, sessions, cookie };
}

Deno.test("a session is a cookie that scripts and other sites do not get", async () => {
  const { sessions, cookie } = await setUp();
  match(await sessions.open("secret") ?? "", /; HttpOnly; Secure; SameSite=Strict; Max-Age=43200$/);
  equal(await sessions.open("guessed"), undefined);
  equal(await sessions.open(""), undefined);
  equal(sessions.holder(`other=1; ${await cookie()}`), ANN);
  equal(sessions.holder(undefined), undefined);
  ok(!(await cookie()).includes("secret"), "it does not hold the token");
});

Deno.test("a session ends with its time, with its token, and with any change to it", async () => {
  const { sessions, cookie, clock, tokens } = await setUp();
  const good = await cookie();
  for (
    const bad of [good.slice(0, -1), good.replace(/\.\d+\./, ".9999999999."), "heddle_console="]
  ) {
    equal(sessions.holder(bad), undefined, bad);
  }
  clock.now += 13 * 3_600_000;
  equal(sessions.holder(good), undefined);
  const again = await cookie();
  equal(sessions.holder(again), ANN);
  tokens.clear();
  equal(sessions.holder(again), undefined);
});

Deno.test("a session outlives control, and counts for no control with another key", async () => {
  const { options, cookie } = await setUp();
  const good = await cookie();
  equal(new Sessions({ ...options, secret: "key" }).holder(good), ANN);
  equal(new Sessions({ ...options, secret: "other" }).holder(good), undefined);
});
