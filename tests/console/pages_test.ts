import { deepEqual, equal, match, ok } from "node:assert/strict";
import { ShardState } from "@heddle/proto/gen/types";
import { eventually } from "../e2e/heddle.ts";
import { CHROMIUM, startBrowser } from "./browser.ts";
import { startEndpoint } from "./endpoint.ts";
import { INJECTION, Stage } from "./stage.ts";
import { makeUsedKey } from "./used_key.ts";

Deno.test({
  name: "the console shows a fleet page by page, in a real browser",
  ignore: CHROMIUM === undefined,
  async fn(t) {
    await using browser = await startBrowser();
    await using endpoint = await startEndpoint(["Good ", "morning", INJECTION]);
    await using stage = await Stage.set({ endpoint: endpoint.url });
    const page = await browser.open(stage.url);
    const go = (name: string) => page.getByRole("navigation").getByText(name).click();

    await t.step(
      "the fleet: islands, GPUs with who has them, ports, problems in words",
      async () => {
        const island = page.getByRole("region", { name: "ib-a" });
        await island.getByText("16 × h100-80g").waitFor();
        const node = page.getByRole("article", { name: "node h100-a" });
        equal(await node.locator(".gpu").count(), 8);
        await page.locator(".gpu.held").first().waitFor();
        equal(await node.locator(".gpu.bad").getAttribute("class"), "gpu bad");
        await node.getByText("mlx5_7:1 400 Gb/s").waitFor();
        await node.getByText("uncorrected memory errors").waitFor();
        await node.getByText("Reset it, or have it replaced").waitFor();
        await page.getByRole("region", { name: "On their own" }).getByText("alone").first()
          .waitFor();
        await page.getByRole("searchbox").fill("nothing like it");
        equal(await page.locator(".node").count(), 0);
        await page.getByRole("searchbox").fill("alone");
        equal(await page.locator(".node").count(), 1);
      },
    );

    await t.step("a node that joins appears by itself", async () => {
      await page.getByRole("searchbox").fill("");
      await stage.join("late", { fabric: "ib-b", gpus: 2 });
      await page.getByRole("region", { name: "ib-b" }).getByText("late").waitFor();
    });

    await t.step("a node: facts, GPUs, what runs there", async () => {
      await page.getByRole("link", { name: "alone" }).click();
      await page.getByText("none: an island of its own").waitFor();
      await page.getByText("vllm 0.28.1").waitFor();
      await page.getByRole("article", { name: "replica left-0-1" }).waitFor();
    });

    await t.step("models: how many run, and why not", async () => {
      await go("Models");
      await page.getByRole("article", { name: "model chat" }).getByText("1 of 1 ready").waitFor();
      await page.getByRole("article", { name: "model nowhere" }).getByText("0 of 1 ready")
        .waitFor();
    });

    await t.step("a model: shards, why it is placed so, why nowhere else", async () => {
      await page.getByRole("link", { name: "nowhere" }).click();
      await page.getByText(/0\/\d nodes fit/).first().waitFor();
      await page.getByText("want b200-180g have h100-80g").first().waitFor();
      await go("Models");
      await page.getByRole("link", { name: "chat" }).first().click();
      await page.getByRole("cell", { name: "0, leads" }).waitFor();
    });

    await t.step(
      "a replica that may hang, and then hangs: on its page, and as events",
      async () => {
        const chat = page.getByRole("article", { name: /^replica chat-/ });
        const holder = [...stage.agents.values()].find(({ shards }) =>
          [...shards.values()].some(({ spec }) => spec.model === "chat")
        );
        ok(holder);
        holder.reports(
          ShardState.READY,
          "suspected",
          "not answering for 15s; it is called hung at 1m",
        );
        await chat.getByText("suspected", { exact: true }).first().waitFor();
        await chat.getByText(/called hung at 1m/).first().waitFor();
        // Each is told of once it was seen: looks are two seconds apart.
        await go("Events");
        const event = (text: RegExp) => page.getByRole("cell", { name: text }).waitFor();
        const next = "heddle logs chat-\\S+; where it stays: heddle replicas restart chat-\\S+$";
        await event(new RegExp(`^ready → suspected: .* called hung at 1m ?${next}`));
        holder.reports(ShardState.DEGRADED, "no_token", "no answer within 60 s");
        await event(
          new RegExp(`^suspected → degraded: .* no_token: no answer within 60 s ?${next}`),
        );
        await page.goto(`${stage.url}#/models/chat`);
        await chat.getByRole("heading").getByText("degraded", { exact: true }).waitFor();
        await go("Events");
        holder.reports(ShardState.READY, "", "");
        await page.getByText("degraded → ready", { exact: true }).waitFor();
      },
    );

    await t.step("traffic: plots and routers", async () => {
      await go("Traffic");
      await page.getByRole("heading", { name: "By model" }).waitFor();
      await page.getByText("No router has reported").waitFor();
      const now = async (title: string) =>
        await page.getByRole("img", { name: title }).getAttribute("aria-label") ?? "";
      match(await now("Time to first token"), /p50 unknown, p99 unknown$/);
      const times = await eventually("a sample with what a router reports", async () => {
        await stage.routerReports();
        const label = await now("Time to first token");
        return /p99 \d/.test(label) ? label : undefined;
      });
      const [p50 = 0, p99 = 0] = [...times.matchAll(/p\d+ ([\d.]+)/g)].map(([, s]) => Number(s));
      ok(p50 > 0.08 && p50 < 0.12 && p99 > 4 && p99 < 6, times);
      match(await now("Queue by band"), /now platinum 0, gold 3, silver 0, bronze 1$/);
      match(await now("Prompt tokens found"), /cached 75$/);
      await page.getByRole("row", { name: /^chat .* \d\.\d+ s 75 %$/ }).waitFor();
      await page.getByRole("row", { name: /^nowhere .* - -$/ }).waitFor();
      await page.getByRole("link", { name: "chat" }).click();
      await page.getByRole("img", { name: "Queue by band" }).waitFor();
    });

    await t.step("keys and usage: none yet", async () => {
      await go("Keys");
      await page.getByText("Nothing was used in this time").waitFor();
    });

    await t.step("keys and usage: limits, and what was spent", async () => {
      await makeUsedKey(stage.site);
      await go("Events");
      await go("Keys");
      await page.getByRole("img", { name: "Requests by hour" }).waitFor();
      const row = (table: string, cells: string | RegExp) =>
        page.getByRole("table", { name: table }).getByRole("row", { name: cells });
      await row("Usage", "acme/chat chat 1 0 12 4 1.5").waitFor();
      await row("Scopes", /^acme 3 units 1\.5 of 3, anew in .+ 1$/).waitFor();
      await row("Scopes", "acme/chat").waitFor();
      await row("Keys", /^sk-heddle-\S+… ci acme\/chat active \S.* 60 requests\/min$/).waitFor();
    });

    await t.step("events: what changed", async () => {
      await go("Events");
      await page.locator("tr", { hasText: "node late" }).first().waitFor();
    });

    await t.step("a log: its last lines, and what is added", async () => {
      await go("Logs");
      await page.getByLabel("Whose log").selectOption({ label: "agent of h100-b" });
      const log = page.getByLabel("Log of h100-b");
      await log.getByText("h100-b says hello").waitFor();
      stage.agents.get("h100-b")?.say("one more line");
      await log.getByText("one more line").waitFor();
      equal(stage.agents.get("h100-b")?.logRequests.length, 1);
      await go("Events");
      await page.getByRole("heading", { name: "Events" }).waitFor();
      await stage.agents.get("h100-b")?.nobodyReads();
    });

    await t.step("the playground streams an answer, with the key that was given", async () => {
      await go("Playground");
      await page.getByLabel("Key").fill("sk-heddle-mine");
      await page.getByLabel("Message").fill("Hello");
      await page.keyboard.press("Enter");
      await page.getByText("Good morning").waitFor();
      await page.getByText(/first token after \d+ ms/).waitFor();
      equal(endpoint.asked.at(-1)?.authorization, "Bearer sk-heddle-mine");
      await page.getByLabel("Model").selectOption("nowhere");
      await page.getByLabel("Message").fill("Hello");
      await page.getByRole("button", { name: "Send" }).click();
      await page.getByText("no endpoint for model nowhere").waitFor();
    });

    await t.step("nothing that a node, an engine or a model says is markup", async () => {
      const decision = JSON.stringify(JSON.stringify({ node: "late", reason: INJECTION }));
      await page.evaluate(`fetch("/console/rpc/heddle.v1.AdminService/Cordon", {
        method: "POST", headers: { "content-type": "application/json" }, body: ${decision},
      })`);
      for (const path of ["nodes", "models", "nodes/alone", "logs/node/alone", "events"]) {
        await page.goto(`${stage.url}#/${path}`);
        await page.locator("main:has-text('onerror')").waitFor();
      }
      await page.goto(`${stage.url}#/logs/node/alone`);
      await page.getByLabel("Log of alone").getByText("onerror").waitFor();
      await page.goto(`${stage.url}#/models/${encodeURIComponent(INJECTION)}`);
      await page.getByRole("heading", { name: `Model ${INJECTION}` }).waitFor();
      equal(await page.locator("main img, main script, main [onerror]").count(), 0);
      ok(!(await page.title()).startsWith("owned"));
    });

    deepEqual(browser.complaints, []);
  },
});

Deno.test({
  name: "the console works by keyboard, in the dark, and on a small screen",
  ignore: CHROMIUM === undefined,
  async fn(t) {
    await using browser = await startBrowser();
    await using stage = await Stage.set();
    await t.step("a small screen shows every page without scrolling sideways", async () => {
      await makeUsedKey(stage.site);
      const page = await browser.open(stage.url, { width: 360 });
      for (
        const path of [
          "nodes",
          "nodes/h100-a",
          "models",
          "models/chat",
          "traffic",
          "events",
          "logs",
          "keys",
          "playground",
        ]
      ) {
        await page.goto(`${stage.url}#/${path}`);
        await page.getByRole("heading", { level: 1 }).waitFor();
        if (path === "keys") await page.getByRole("table", { name: "Keys" }).waitFor();
        const wide = await page.evaluate("document.documentElement.scrollWidth");
        ok(Number(wide) <= 360, `${path} is ${wide} wide`);
      }
      await page.goto(`${stage.url}#/nodes/h100-a`);
      await page.getByRole("button", { name: "Drain" }).click();
      const box = await page.getByRole("dialog").boundingBox();
      ok(box !== null && box.x >= 0 && box.x + box.width <= 360, JSON.stringify(box));
      const bar = await page.getByRole("navigation").boundingBox();
      ok(bar !== null && bar.height <= 120, "most of a small screen is for what is shown");
      for (const name of ["Fleet", "Logs", "Playground"]) {
        const link = await page.getByRole("navigation").getByRole("link", { name }).boundingBox();
        ok(link !== null && link.x >= 0 && link.x + link.width <= 360, `${name} is in sight`);
      }
    });
    await t.step("dark as the system says, and light as the reader says", async () => {
      const page = await browser.open(stage.url, { dark: true });
      const paper = () => page.evaluate("getComputedStyle(document.body).backgroundColor");
      await page.locator(".gpu").first().waitFor();
      equal(await paper(), "rgb(20, 23, 28)");
      await page.getByRole("button", { name: "Theme: system" }).click();
      await page.getByRole("button", { name: "Theme: light" }).waitFor();
      equal(await paper(), "rgb(247, 248, 250)");
      await page.reload();
      await page.getByRole("button", { name: "Theme: light" }).waitFor();
    });
    await t.step("everything is reached with Tab, and a dialog is left with Escape", async () => {
      const page = await browser.open(stage.url);
      const cordon = page.getByRole("article", { name: "node alone" })
        .getByRole("button", { name: "Cordon" });
      await cordon.waitFor();
      await page.keyboard.press("Tab");
      equal(await page.evaluate("document.activeElement.textContent"), "To the content");
      await page.keyboard.press("Enter");
      equal(await page.evaluate("document.activeElement.id"), "content");
      await cordon.focus();
      await page.keyboard.press("Enter");
      await page.getByRole("dialog").waitFor();
      await page.keyboard.press("Escape");
      await page.getByRole("dialog").waitFor({ state: "detached" });
    });
    await t.step("each page is opened, and a node cordoned, without a mouse", async () => {
      const page = await browser.open(stage.url);
      for (
        const name of ["Models", "Traffic", "Keys", "Events", "Logs", "Playground", "Fleet"]
      ) {
        const link = page.getByRole("navigation").getByRole("link", { name });
        await link.waitFor();
        const focused = () => page.evaluate("document.activeElement.textContent");
        // It begins anew on top of the page, and passes all of it at worst.
        for (let presses = 0; await focused() !== name && presses < 200; presses++) {
          await page.keyboard.press("Tab");
        }
        equal(await focused(), name);
        await page.keyboard.press("Enter");
        await page.getByRole("heading", { name, level: 1 }).waitFor();
      }
      const alone = page.getByRole("article", { name: "node alone" });
      await alone.getByRole("button", { name: "Cordon" }).focus();
      await page.keyboard.press("Enter");
      await page.getByRole("dialog").waitFor();
      await page.keyboard.type("no mouse here");
      await page.keyboard.press("Enter");
      await alone.getByText("by local: no mouse here").waitFor();
    });
    await t.step("without an endpoint the playground says how to set one", async () => {
      const page = await browser.open(`${stage.url}#/playground`);
      await page.getByText("console.endpoint").waitFor();
    });
    deepEqual(browser.complaints, []);
  },
});
