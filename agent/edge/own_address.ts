/** The node's address: the one from which it reaches control. A default would be wrong on most nodes. */
import { isLoopback } from "@heddle/common/address";
import { logger } from "@heddle/common/log";
import { delay } from "@heddle/common/task";

const log = logger("agent");

const DIAL_MS_MAX = 3_000;
/** Between looks for a route to control. */
const ROUTE_POLL_MS = 2_000;

/** Source address of the route to control, once there is one: waits for it. Rejects only when `signal` aborts. */
export async function routedAddress(
  controls: readonly string[],
  signal: AbortSignal,
): Promise<string> {
  for (let told = false;; told = true) {
    const address = await addressTowards(controls);
    if (address !== undefined) return address;
    if (!told) log.warning("Waiting for a route to control to learn this node's address from");
    await delay(ROUTE_POLL_MS, signal);
    signal.throwIfAborted();
  }
}

/** Source address of the route to the first control that answers; undefined when none does. */
export async function addressTowards(controls: readonly string[]): Promise<string | undefined> {
  for (const control of controls) {
    const url = new URL(control);
    const host = url.hostname.replace(/^\[|\]$/g, "");
    if (isLoopback(host)) return host === "localhost" ? "127.0.0.1" : host;
    const port = Number(url.port) || (url.protocol === "https:" ? 443 : 80);
    const address = await sourceAddress(host, port);
    if (address !== undefined) return address;
  }
  return undefined;
}

async function sourceAddress(hostname: string, port: number): Promise<string | undefined> {
  const signal = AbortSignal.timeout(DIAL_MS_MAX);
  try {
    const connection = await Deno.connect({ hostname, port, signal });
    try {
      return connection.localAddr.hostname;
    } finally {
      connection.close();
    }
  } catch {
    // Away, or not there: the next one is asked, and all of them again.
    return undefined;
  }
}
