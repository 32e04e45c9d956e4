import { deepEqual, equal } from "node:assert/strict";
import { CHROMIUM, startBrowser } from "./browser.ts";
import { Stage } from "./stage.ts";

Deno.test({
  name: "the console shows attached engines with provider and host, and offers nothing it may not",
  ignore: CHROMIUM === undefined,
  async fn(t) {
    await using browser = await startBrowser();
    await using stage = await Stage.set();
    await stage.attach({ engineId: "e1", provider: "vast", hostId: "h-9" });
    const page = await browser.open(stage.url);
    const where = "on vast, host h-9, 1 GPU";

    await t.step("the fleet has its node apart from the islands", async () => {
      const island = page.getByRole("region", { name: "Attached" });
      const node = island.getByRole("article", { name: "node rented/e1/0" });
      await node.getByText("attached", { exact: true }).waitFor();
      await node.getByText(where).waitFor();
      deepEqual(await node.getByRole("button").allTextContents(), ["Drain"]);
      const own = page.getByRole("region", { name: "On their own" });
      equal(await own.getByRole("article", { name: "rented" }).count(), 0);
    });

    await t.step(
      "its node and its model have it as a replica, without buttons or log",
      async () => {
        await page.getByRole("link", { name: "rented/e1/0" }).click();
        const replica = page.getByRole("article", { name: "replica rented/e1" });
        await page.getByRole("definition").getByText(where).waitFor();
        equal(await page.getByRole("link", { name: /^Log\b/ }).count(), 0);
        await page.goto(`${stage.url}#/models/chat`);
        await replica.getByText("attached", { exact: true }).waitFor();
        await replica.getByText(where).waitFor();
        equal(await replica.getByRole("button").count(), 0);
        equal(await replica.getByRole("link", { name: /^Log\b/ }).count(), 0);
        await page.goto(`${stage.url}#/logs`);
        await page.getByLabel("Whose log").getByText("agent of alone").waitFor({
          state: "attached",
        });
        equal(await page.getByLabel("Whose log").getByText("rented").count(), 0);
      },
    );

    await t.step("a drain takes it from the routers, and can be taken back", async () => {
      await page.goto(`${stage.url}#/nodes`);
      const node = page.getByRole("article", { name: "node rented/e1/0" });
      await node.getByRole("button", { name: "Drain" }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByText("The engine is not Heddle's to stop, and runs on").waitFor();
      await dialog.getByRole("heading", { name: "What would happen" }).waitFor();
      await dialog.getByRole("button", { name: "Drain", exact: true }).click();
      await dialog.waitFor({ state: "detached" });
      await node.getByText("draining", { exact: true }).waitFor();
      await node.getByRole("button", { name: "Uncordon" }).waitFor();
    });
    deepEqual(browser.complaints, []);
  },
});
