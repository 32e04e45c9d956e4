/**
 * `deno task console:pictures`: the pictures of docs/console.md, of a console that is open without a
 * login and has some minutes of traffic. docs/console.md says how to bring one up.
 *
 *   deno task console:pictures http://127.0.0.1:9190/ [--into docs/images]
 */
import { parseArgs } from "node:util";
import { join } from "node:path";
import type { Page } from "playwright-core";
import { runTool, say } from "../../tools/say.ts";
import { startBrowser } from "./browser.ts";

const WIDTH = 1_200;
const PHONE = 390;

interface Picture {
  readonly name: string;
  /** Below the console's address. */
  readonly hash: string;
  readonly dark?: boolean;
  readonly width?: number;
  /** The whole page and not one screen of it. */
  readonly whole?: boolean;
  readonly ready: (page: Page) => Promise<void>;
}

const heading = (name: string) => async (page: Page) =>
  await page.getByRole("heading", { name, level: 1 }).waitFor();

/** Of `deno task up --fleet examples/fleet.yaml`. */
const PICTURES: readonly Picture[] = [
  { name: "fleet", hash: "#/", ready: heading("Fleet") },
  { name: "narrow", hash: "#/", dark: true, width: PHONE, ready: heading("Fleet") },
  { name: "traffic", hash: "#/traffic", dark: true, whole: true, ready: heading("Traffic") },
  {
    name: "model",
    hash: "#/models/wide",
    whole: true,
    ready: async (page) => await page.getByText("placed; for one more").waitFor(),
  },
  {
    name: "drain",
    hash: "#/",
    ready: async (page) => {
      const card = page.getByRole("article", { name: "node a100-a" });
      await card.getByRole("button", { name: "Drain" }).click();
      await page.getByText("go on as they are").waitFor();
    },
  },
];

/** What is drawn after the words: plots, and islands that come with the first push. */
const SETTLE_MS = 2_000;

async function main(): Promise<void> {
  const { values, positionals } = parseArgs({
    args: Deno.args,
    allowPositionals: true,
    options: { into: { type: "string", default: "docs/images" } },
  });
  const [url] = positionals;
  if (url === undefined) {
    throw new Error("Want the address of a console, as deno task up prints it");
  }
  await using browser = await startBrowser();
  for (const { name, hash, dark = false, width = WIDTH, whole = false, ready } of PICTURES) {
    const page = await browser.open(`${url}${hash}`, { width, dark });
    await ready(page);
    await page.waitForTimeout(SETTLE_MS);
    const path = join(values.into, `console-${name}.png`);
    await page.screenshot({ path, fullPage: whole });
    await page.context().close();
    say(path);
  }
  if (browser.complaints.length > 0) throw new Error(browser.complaints.join("\n"));
}

if (import.meta.main) await runTool(main);
