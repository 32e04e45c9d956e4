/** A listener of the console's own: plain HTTP, on loopback alone, where nobody has to log in. */
import http from "node:http";
import { type Address, formatAddress } from "@heddle/common/address";
import { errorText, HeddleError } from "@heddle/proto/error";
import type { WebRequest, WebResponse } from "./answer.ts";

/** A browser on the same machine is quick. */
const HEADERS_MS_MAX = 5_000;

export interface ConsoleListener {
  /** With the port the system chose when 0 was asked for. */
  readonly address: Address;
  close(): Promise<void>;
}

/** Starts it. Throws `system` when the address cannot be bound. */
export async function startConsoleListener(
  listen: Address,
  handler: (request: WebRequest, response: WebResponse) => void,
): Promise<ConsoleListener> {
  const server = http.createServer({ headersTimeout: HEADERS_MS_MAX }, handler);
  await new Promise<void>((resolve, reject) => {
    server.once("error", (cause) => {
      const text = `Cannot listen on ${formatAddress(listen)}: ${errorText(cause)}`;
      reject(new HeddleError("system", text, { cause }));
    });
    server.listen({ host: listen.host, port: listen.port }, resolve);
  });
  const bound = server.address();
  const port = typeof bound === "object" && bound !== null ? bound.port : listen.port;
  return {
    address: { host: listen.host, port },
    close() {
      const closed = new Promise<void>((resolve) => server.close(() => resolve()));
      server.closeAllConnections();
      return closed;
    },
  };
}
