/**
 * A real Chromium for tests of the console: the one that HEDDLE_TEST_CHROMIUM names, or the system's.
 * Where there is none, tests that need it are reported as skipped.
 */
import type { Page } from "playwright-core";

const PLACES = ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"];

/** Longest wait for what a test expects to see, on a slow and busy machine. */
const EXPECT_MS_MAX = 40_000;

/** Path of the browser; undefined where there is none. */
export const CHROMIUM: string | undefined = Deno.env.get("HEDDLE_TEST_CHROMIUM") ??
  PLACES.find((path) => exists(path));

/** A browser whose pages say what they complained about. */
export interface Browser extends AsyncDisposable {
  /** A page of its own, without anybody's cookies. */
  open(url: string, options?: { readonly width?: number; readonly dark?: boolean }): Promise<Page>;
  /** Everything that pages complained about, their own errors included. */
  readonly complaints: readonly string[];
}

/**
 * Starts it. To be called before anything else is started: loading Playwright takes seconds in which
 * this process does nothing else, and connections would break.
 */
export async function startBrowser(): Promise<Browser> {
  // Playwright asks, as it is loaded, whether this is a Windows machine in disguise, and looks below
  // /proc for that, which Deno refuses; unless it is told that it is being tested for it.
  Deno.env.set("__IS_WSL_TEST__", "1");
  const { chromium } = await import("playwright-core");
  const browser = await chromium.launch({
    executablePath: CHROMIUM ?? "",
    // Its sandbox needs what a container does not give; it only sees pages of these tests.
    args: ["--no-sandbox"],
  });
  const complaints: string[] = [];
  return {
    complaints,
    async open(url, { width = 1_280, dark = false } = {}) {
      const context = await browser.newContext({
        // The authority of a test's control is nobody's.
        ignoreHTTPSErrors: true,
        viewport: { width, height: 900 },
        colorScheme: dark ? "dark" : "light",
      });
      context.setDefaultTimeout(EXPECT_MS_MAX);
      const page = await context.newPage();
      page.on("pageerror", (error) => void complaints.push(error.message));
      page.on("console", (message) => {
        // That a request was refused, or control is away, is on the page.
        if (message.type() === "error" && !/Failed to load resource/.test(message.text())) {
          complaints.push(message.text());
        }
      });
      await page.goto(url);
      return page;
    },
    [Symbol.asyncDispose]: () => browser.close(),
  };
}

function exists(path: string): boolean {
  try {
    return Deno.statSync(path).isFile;
  } catch {
    return false;
  }
}
