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

Deno.test("limits that operators set hold in a router, and what is used is in control's sums", async () => {
  await using site = await Site.start([]);
  const { secret } = await site.key({ requestsPerMinute: 5n, concurrentRequests: 3 });
  await site.run("router");
  const ask = async () => {
    const response = await fetch(`${site.url}/v1/chat/completions`, {
      method: "POST",
      headers: { authorization: `Bearer ${secret}`, "content-type": "application/json" },
      body: JSON.stringify({
        model: "m",
        max_tokens: 2,
        messages: [{ role: "user", content: "a" }],
      }),
    });
    await response.body?.cancel();
    return response;
  };
  const answers = [];
  for (let n = 0; n < 8; n++) answers.push(await ask());
  deepEqual(answers.map(({ status }) => status), [200, 200, 200, 200, 200, 429, 429, 429]);
  const remaining = answers.map(({ headers }) => headers.get("x-ratelimit-remaining-requests"));
  equal(remaining[0], "4");
  equal(remaining.at(-1), "0");
  const retry = Number(answers.at(-1)?.headers.get("retry-after"));
  ok(Number.isInteger(retry) && retry >= 1 && retry <= 120, String(retry));
  await site.settled();
  const { requests, costMicro } = await site.ledger();
  equal(requests, 8);
  ok(costMicro > 0);
});
