/** Addresses of the configuration, read without a complaint. */
import { type Address, parseAddress } from "@heddle/common/address";
import type { Origin } from "../core/fleet/endpoint.ts";

/** Reads an engine's URL; a "/v1" at its end is ours to add and so dropped. */
export function parseOrigin(text: string): Origin | undefined {
  if (!URL.canParse(text)) return undefined;
  const url = new URL(text);
  const secure = url.protocol === "https:";
  if (!secure && url.protocol !== "http:") return undefined;
  if (url.username !== "" || url.password !== "" || url.search !== "" || url.hash !== "") {
    return undefined;
  }
  return {
    secure,
    host: url.hostname.replace(/^\[|\]$/g, ""),
    port: url.port === "" ? (secure ? 443 : 80) : Number(url.port),
    basePath: url.pathname.replace(/\/+$/, "").replace(/\/v1$/, ""),
  };
}

// A rule across fields also runs when one of them is wrong by itself; then it has nothing to say.
export function parsedAddress(text: string): Address | undefined {
  try {
    return parseAddress(text);
  } catch {
    return undefined;
  }
}
