import { deepEqual, equal, ok } from "node:assert/strict";
import type { Locator, Page } from "playwright-core";
import { CHROMIUM, startBrowser } from "./browser.ts";
import { Stage } from "./stage.ts";

/** Opens an action's dialog, and waits until it says what would happen. */
async function ask(page: Page, article: string, button: string) {
  await page.getByRole("article", { name: article }).getByRole("button", { name: button }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("heading", { name: "What would happen" }).waitFor();
  return decision(dialog, button);
}

/** Opens the dialog of an action that has nothing to foresee. */
async function askPlain(page: Page, article: string, button: string) {
  await page.getByRole("article", { name: article }).getByRole("button", { name: button }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByRole("heading", { level: 2 }).waitFor();
  return decision(dialog, button);
}

function decision(dialog: Locator, button: string) {
  return {
    dialog,
    async decide(why?: string) {
      if (why !== undefined) await dialog.getByLabel("Why").fill(why);
      await dialog.getByRole("button", { name: button, exact: true }).click();
      await dialog.waitFor({ state: "detached" });
    },
  };
}

Deno.test({
  name: "an operator's decisions by button, each with its consequences first",
  ignore: CHROMIUM === undefined,
  async fn(t) {
    await using browser = await startBrowser();
    await using stage = await Stage.set({ timings: { drainGraceMs: 1_000 } });
    const page = await browser.open(stage.url);
    const chat = page.getByRole("article", { name: "model chat" });
    await page.locator(".gpu.held").first().waitFor();
    const holder = await page.locator(".island .node:has(.gpu.held)").first().getAttribute(
      "aria-label",
    ) ?? "";

    // What a model that is gone has left there is stopped first, and would be part of what is foreseen.
    await stage.agents.get("alone")?.stopped;
    await page.getByText("left-0-1").waitFor({ state: "detached" });

    await t.step("cordon and uncordon", async () => {
      const cordon = await ask(page, "node alone", "Cordon");
      await cordon.dialog.getByText("Nothing starts and nothing stops").waitFor();
      await cordon.decide("the fan is loud");
      const node = page.getByRole("article", { name: "node alone" });
      await node.getByText("by local: the fan is loud").waitFor();
      await (await ask(page, "node alone", "Uncordon")).decide();
      await node.getByText("ready").waitFor();
    });

    await t.step(
      "a drain shows what stops and where it goes on; cancelling changes nothing",
      async () => {
        const drain = await ask(page, holder, "Drain");
        await drain.dialog.getByText(/^stops chat-\S+ of chat on/).waitFor();
        await drain.dialog.getByText(/^starts a replica of chat \(h100\) on/).waitFor();
        await drain.dialog.getByRole("button", { name: "Cancel" }).click();
        await drain.dialog.waitFor({ state: "detached" });
        ok(await page.getByRole("article", { name: holder }).getByText("ready").isVisible());
        await (await ask(page, holder, "Drain")).decide();
        await page.getByRole("article", { name: holder }).getByText("drained").waitFor();
        await (await ask(page, holder, "Uncordon")).decide();
        await page.getByRole("article", { name: holder }).getByText("ready").waitFor();
      },
    );

    await t.step("scale, with the number chosen in the dialog", async () => {
      await page.goto(`${stage.url}#/models`);
      const scale = await ask(page, "model chat", "Scale");
      await scale.dialog.getByLabel("Replicas").fill("3");
      await scale.dialog.getByText("starts a replica of chat").nth(1).waitFor();
      await scale.decide("a demo");
      await chat.getByText("held at 3", { exact: true }).waitFor();
      await chat.getByText("3 of 3 ready").waitFor();
      await (await ask(page, "model chat", "Let it scale")).decide();
      await chat.getByText("held at 3", { exact: true }).waitFor({ state: "detached" });
    });

    await t.step("pause and resume", async () => {
      await (await ask(page, "model chat", "Pause")).decide("wait for me");
      await chat.getByText("paused", { exact: true }).waitFor();
      await (await ask(page, "model chat", "Resume")).decide();
      await chat.getByText("paused", { exact: true }).waitFor({ state: "detached" });
    });

    await t.step("restart and stop a replica", async () => {
      await page.goto(`${stage.url}#/models/chat`);
      const first = await page.getByRole("article").first().getAttribute("aria-label") ?? "";
      await (await ask(page, first, "Restart")).decide("it stutters");
      await page.getByRole("article", { name: first, exact: true }).waitFor({ state: "detached" });
      const second = await page.getByRole("article").first().getAttribute("aria-label") ?? "";
      await (await ask(page, second, "Stop")).decide();
      await page.getByRole("article", { name: second, exact: true }).waitFor({ state: "detached" });
    });

    await t.step("what control refuses is said in the dialog", async () => {
      await page.goto(`${stage.url}#/models`);
      await chat.getByRole("button", { name: "Scale" }).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByLabel("Replicas").fill("9999");
      await dialog.getByRole("button", { name: "Scale", exact: true }).click();
      await dialog.getByText(/is the most/).waitFor();
      await page.keyboard.press("Escape");
    });

    await t.step("all of it is on the audit trail, under the operator's name", async () => {
      await page.goto(`${stage.url}#/events`);
      const trail = page.getByRole("table", { name: "Audit trail" });
      for (
        const what of ["cordon alone", "drain h100", "scale chat", "pause chat", "restart chat"]
      ) {
        await trail.getByRole("row", { name: what }).first().waitFor();
      }
      equal(await trail.getByRole("cell", { name: "local" }).count() > 5, true);
    });
    deepEqual(browser.complaints, []);
  },
});

Deno.test({
  name: "a model that fails is retried by button, and a node that is lost is forgotten",
  ignore: CHROMIUM === undefined,
  async fn(t) {
    await using browser = await startBrowser();
    const [unreachableMs, lostMs, never] = [3_000, 6_000, 3_600_000];
    await using stage = await Stage.set({
      // Nothing is tried again by itself: it is the button that does.
      timings: { unreachableMs, lostMs, backoff: { firstMs: never, maxMs: never } },
    });
    await stage.join("gone", { fabric: "ib-b", gpus: 2 });
    const page = await browser.open(`${stage.url}#/models`);
    const chat = page.getByRole("article", { name: "model chat" });
    await chat.getByText("1 of 1 ready").waitFor();

    await t.step("retry", async () => {
      for (const agent of stage.agents.values()) agent.failing = true;
      const scale = await ask(page, "model chat", "Scale");
      await scale.dialog.getByLabel("Replicas").fill("2");
      await scale.decide();
      await chat.getByText(/^tried again in/).waitFor();
      await chat.getByText("1 of 2 ready").waitFor();
      const retry = await askPlain(page, "model chat", "Retry");
      await retry.dialog.getByText("Its failed starts and its waiting time are forgotten")
        .waitFor();
      for (const agent of stage.agents.values()) agent.failing = false;
      await retry.decide();
      await chat.getByText("2 of 2 ready").waitFor();
      await chat.getByRole("button", { name: "Retry" }).waitFor({ state: "detached" });
    });

    await t.step("forget, of a node that is lost and of no other", async () => {
      await page.goto(`${stage.url}#/nodes`);
      const gone = page.getByRole("article", { name: "node gone" });
      await gone.getByText("ready").waitFor();
      equal(await page.getByRole("button", { name: "Forget" }).count(), 0);
      await stage.agents.get("gone")?.leave();
      await gone.getByText("lost").waitFor();
      await (await askPlain(page, "node gone", "Forget")).decide();
      await gone.waitFor({ state: "detached" });
    });

    await t.step("both are on the audit trail", async () => {
      await page.goto(`${stage.url}#/events`);
      const trail = page.getByRole("table", { name: "Audit trail" });
      await trail.getByRole("row", { name: "retry chat" }).waitFor();
      await trail.getByRole("row", { name: "forget node gone" }).waitFor();
    });
    deepEqual(browser.complaints, []);
  },
});
