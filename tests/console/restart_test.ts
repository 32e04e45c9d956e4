import { deepEqual, equal } from "node:assert/strict";
import { CHROMIUM, startBrowser } from "./browser.ts";
import { Stage } from "./stage.ts";

Deno.test({
  name: "a console that is open while control restarts says so, and goes on by itself",
  ignore: CHROMIUM === undefined,
  async fn(t) {
    await using browser = await startBrowser();
    await using stage = await Stage.set();
    const page = await browser.open(stage.url);
    const secured = await browser.open(stage.securedUrl);
    await secured.getByLabel("Token").fill("secret-viewer");
    await secured.getByRole("button", { name: "Log in" }).click();
    await secured.locator(".gpu.held").first().waitFor();
    await page.locator(".gpu.held").first().waitFor();

    await t.step("what was there stays, marked as old", async () => {
      await stage.stop();
      await page.getByText("Control does not answer").waitFor();
      equal(await page.locator(".node").count(), 3);
      await secured.getByText("Control does not answer").waitFor();
    });

    await t.step(
      "it shows what the new control knows, while that waits for its nodes",
      async () => {
        await stage.start();
        await page.getByText(/has just begun to lead and waits for alone, h100-a, h100-b/)
          .waitFor();
        await stage.join("h100-a", { fabric: "ib-a" });
        await stage.join("h100-b", { fabric: "ib-a" });
        await stage.join("alone", { gpus: 8 });
        await page.getByText("has just begun to lead").waitFor({ state: "detached" });
        await page.locator(".gpu.held").first().waitFor();
      },
    );

    await t.step("nobody has to log in again", async () => {
      await secured.locator("main[aria-busy=false]").waitFor();
      await secured.getByText("viewer-1, viewer").waitFor();
    });

    await t.step("a page that was closed is not pushed to any more", async () => {
      equal(await stage.consoles(), 2);
      await page.close();
      await stage.consolesAre(1);
      await secured.close();
      await stage.consolesAre(0);
    });
    deepEqual(browser.complaints, []);
  },
});
