import { deepEqual, equal, ok } from "node:assert/strict";
import type { Page } from "playwright-core";
import { CHROMIUM, startBrowser } from "./browser.ts";
import { Stage } from "./stage.ts";

async function logIn(page: Page, token: string): Promise<void> {
  await page.getByLabel("Token").fill(token);
  await page.getByRole("button", { name: "Log in" }).click();
}

Deno.test({
  name: "the console lets nobody in without a token, and nobody do more than their role",
  ignore: CHROMIUM === undefined,
  async fn(t) {
    await using browser = await startBrowser();
    await using stage = await Stage.set();

    await t.step("a wrong token is refused, a right one is let in, over TLS", async () => {
      const page = await browser.open(stage.securedUrl);
      await logIn(page, "secret-guessed");
      await page.getByText("nobody has this token").waitFor();
      await logIn(page, "secret-operator");
      await page.getByText("operator-1, operator").waitFor();
      await page.getByRole("button", { name: "Cordon" }).first().waitFor();
      const [cookie] = await page.context().cookies();
      deepEqual([cookie?.httpOnly, cookie?.secure, cookie?.sameSite], [true, true, "Strict"]);
      equal(await page.evaluate("document.cookie"), "");
    });

    await t.step("a decision is recorded under the token's name", async () => {
      const page = await browser.open(stage.securedUrl);
      await logIn(page, "secret-operator");
      await page.getByRole("article", { name: "node alone" })
        .getByRole("button", { name: "Cordon" }).click();
      await page.getByRole("dialog").getByRole("button", { name: "Cordon" }).click();
      await page.getByText("by operator-1: no reason given").waitFor();
    });

    await t.step(
      "a viewer sees the fleet and no buttons, and control refuses all the same",
      async () => {
        const page = await browser.open(stage.securedUrl);
        await logIn(page, "secret-viewer");
        await page.getByText("viewer-1, viewer").waitFor();
        for (const path of ["nodes", "nodes/h100-a", "models", "models/chat"]) {
          await page.goto(`${stage.securedUrl}#/${path}`);
          await page.getByRole("heading", { level: 1 }).waitFor();
          equal(await page.locator("main button").count(), 0, path);
          equal(await page.getByRole("link", { name: "Log", exact: true }).count(), 0, path);
        }
        for (const path of ["traffic", "keys", "events"]) {
          await page.goto(`${stage.securedUrl}#/${path}`);
          await page.getByRole("heading", { level: 1 }).waitFor();
          equal(await page.locator("main button").count(), 0, path);
        }
        await page.goto(`${stage.securedUrl}#/playground`);
        await page.getByRole("heading", { level: 1 }).waitFor();
        equal(await page.getByLabel("Message").count(), 0);
        await page.goto(`${stage.securedUrl}#/logs`);
        await page.getByText("a viewer may not read them").waitFor();
        const status = (path: string, body: unknown) =>
          page.evaluate(`fetch("${path}", {
          method: "POST",
          headers: { "content-type": "application/json" },
          body: ${JSON.stringify(JSON.stringify(body))},
        }).then((answer) => answer.status)`);
        const admin = "/console/rpc/heddle.v1.AdminService";
        equal(await status(`${admin}/ListNodes`, {}), 200);
        equal(await status(`${admin}/Cordon`, { node: "h100-a" }), 403);
        equal(await status(`${admin}/ApplyCatalog`, { text: "models: []", yes: true }), 403);
        equal(await status("/console/preview", { kind: "drain", node: "h100-a" }), 403);
        equal(await status("/console/chat", {}), 403);
      },
    );

    await t.step("who logs out is out", async () => {
      const page = await browser.open(stage.securedUrl);
      await logIn(page, "secret-viewer");
      await page.getByRole("button", { name: "Log out" }).click();
      await page.getByLabel("Token").waitFor();
      await page.reload();
      await page.getByLabel("Token").waitFor();
    });

    await t.step("another site's page reads nothing and decides nothing", async () => {
      const page = await browser.open(stage.url);
      await page.locator(".node").first().waitFor();
      const other = await browser.open("about:blank");
      const reached = await other.evaluate(`fetch("${stage.url}rpc/heddle.v1.AdminService/Cordon", {
        method: "POST", mode: "no-cors", body: '{"node":"h100-a"}',
      }).then((answer) => answer.type, () => "blocked")`);
      ok(reached === "opaque" || reached === "blocked", String(reached));
      await page.reload();
      await page.getByRole("article", { name: "node h100-a" }).getByText("ready").waitFor();
    });
    deepEqual(browser.complaints.filter((each) => !/CORS|blocked by/.test(each)), []);
  },
});
