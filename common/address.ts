/** "host:port" addresses, IPv6 in brackets. */
import { HeddleError } from "@heddle/proto/error";

export interface Address {
  /** A host name, an IPv4 address, or an IPv6 address without brackets. */
  readonly host: string;
  readonly port: number;
}

/** Reads "host:port" or "[v6]:port". Throws `invalid_input` naming what is wrong. */
export function parseAddress(text: string): Address {
  const match = /^(?:\[([0-9A-Fa-f:.%]+[^\]]*)\]|([^:\s/[\]]+)):(\d{1,5})$/.exec(text);
  const host = match?.[1] ?? match?.[2];
  const port = Number(match?.[3]);
  if (host === undefined || port > 65535) {
    throw new HeddleError(
      "invalid_input",
      `Cannot read address "${text}": want host:port, with IPv6 in brackets as in [::1]:9090`,
    );
  }
  return { host, port };
}

export function formatAddress(address: Address): string {
  return address.host.includes(":")
    ? `[${address.host}]:${address.port}`
    : `${address.host}:${address.port}`;
}

/** True for addresses that never leave this machine. Names other than "localhost" are not trusted. */
export function isLoopback(host: string): boolean {
  return host === "localhost" || host === "::1" || /^127(\.\d{1,3}){3}$/.test(host) ||
    /^::ffff:127(\.\d{1,3}){3}$/i.test(host);
}
