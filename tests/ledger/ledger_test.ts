/** The account adds up: what engines did is what the ledger has, whoever is killed meanwhile. */
import { deepEqual, equal, ok } from "node:assert/strict";
import { account, told, unexplained } from "./account.ts";
import { Site } from "./site.ts";

/** `deno task ledger` sends ten thousand. */
const REQUESTS = 400;

Deno.test("engines and ledger agree while router and control are killed and started again", async () => {
  const it = await account(REQUESTS, {
    seed: 7,
    events: [
      { after: 100, what: "router", how: "kill" },
      { after: 200, what: "control", how: "kill" },
      { after: 300, what: "router", how: "stop" },
    ],
  });
  const text = told(it);
  Deno.stdout.writeSync(new TextEncoder().encode(`\n${text}\n`));
  deepEqual(unexplained(it), [], text);
  equal(it.billed.requests, it.records, text);
  ok(it.records > REQUESTS * 0.8, text);
});

Deno.test("a key that is revoked is refused within two seconds, and was never logged", async () => {
  await using site = await Site.start([]);
  const { secret, id } = await site.key();
  await site.run("router");
  const status = async () => {
    const response = await fetch(`${site.url}/v1/models`, { headers: { "x-api-key": secret } });
    await response.body?.cancel();
    return response.status;
  };
  equal(await status(), 200);
  const from = performance.now();
  await site.revoke(id);
  while (await status() === 200) ok(performance.now() - from < 2_000, "it is still let in");
  ok(!site.logs.includes(secret.slice(10)), "the log has the key");
});
