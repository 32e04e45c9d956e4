/** For tests: waits for what no event tells of, such as another process being gone. */
import { delay } from "@heddle/common/task";

const WAIT_MS_MAX = 20_000;
const POLL_MS = 20;

/** Resolves once `holds`; rejects, naming `what`, when it does not within 20 s. */
export async function eventually(
  what: string,
  holds: () => boolean | Promise<boolean>,
): Promise<void> {
  const deadline = performance.now() + WAIT_MS_MAX;
  const { signal } = new AbortController();
  while (!await holds()) {
    if (performance.now() > deadline) throw new Error(`waited in vain: ${what}`);
    await delay(POLL_MS, signal);
  }
}
