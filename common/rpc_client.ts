/** Connect RPC over HTTP/2 to control: mutual TLS anywhere, plaintext on loopback only. */
import tls, { checkServerIdentity, type PeerCertificate } from "node:tls";
import type { Interceptor, Transport } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { HeddleError } from "@heddle/proto/error";
import { formatIdentity, shownCertificate } from "./identity.ts";
import { isLoopback } from "./address.ts";
import type { TlsMaterial } from "./mtls_files.ts";
import { RpcSession } from "./rpc/session.ts";

/** A machine without power answers nothing at all, and the system would try it for two minutes. */
const CONNECT_MS_MAX = 5_000;
const HTTPS_PORT = 443;

/** A way to call one control. Close it when done: it holds a connection. */
export interface RpcConnection {
  readonly transport: Transport;
  close(): void;
}

type ClientTls = Pick<TlsMaterial, "ca"> & Partial<TlsMaterial>;

export interface RpcClientOptions {
  /** "https://host:port", or "http://…" on loopback. */
  readonly url: string;
  /** Needed for https; without certificate and key for whoever has none yet. */
  readonly tls: ClientTls | undefined;
  /** Longest wait for a TLS connection, in ms. @default 5 s */
  readonly connectMs?: number;
  readonly interceptors?: Interceptor[];
}

/** Prepares a connection; nothing is dialled before the first call. Throws `invalid_input`. */
export function connectRpc(options: RpcClientOptions): RpcConnection {
  const url = checkControlUrl(options.url, options.tls !== undefined);
  const material = options.tls;
  const session = new RpcSession(
    url.origin,
    material && (() => dial(url, material, options.connectMs ?? CONNECT_MS_MAX)),
  );
  return {
    transport: createConnectTransport({
      httpVersion: "2",
      baseUrl: url.origin,
      sessionManager: session,
      interceptors: [...options.interceptors ?? [], session.explain],
      acceptCompression: [],
    }),
    close: () => session.close(),
  };
}

function dial(authority: URL, material: ClientTls, connectMs: number): tls.TLSSocket {
  const socket = tls.connect({
    host: authority.hostname.replace(/^\[|\]$/g, ""),
    port: Number(authority.port || HTTPS_PORT),
    ...(material.cert === undefined ? {} : { cert: material.cert }),
    ...(material.key === undefined ? {} : { key: material.key }),
    ca: material.ca,
    minVersion: "TLSv1.3",
    ALPNProtocols: ["h2"],
    checkServerIdentity: demandControl,
  });
  const timer = setTimeout(
    () => socket.destroy(new Error(`no connection within ${connectMs} ms`)),
    connectMs,
  );
  socket.once("secureConnect", () => clearTimeout(timer));
  socket.once("close", () => clearTimeout(timer));
  return socket;
}

/**
 * Checks the URL of a control against what TLS settings there are, so that a contradiction stops
 * a program at its start. Throws `invalid_input`.
 */
export function checkControlUrl(text: string, hasTls: boolean): URL {
  let url: URL;
  try {
    url = new URL(text);
  } catch {
    throw new HeddleError("invalid_input", `Cannot use control address "${text}": it is no URL`);
  }
  if (url.protocol !== "https:" && url.protocol !== "http:") {
    throw new HeddleError(
      "invalid_input",
      `Cannot use control address "${text}": want https://host:port`,
    );
  }
  if (url.protocol === "https:" && !hasTls) {
    throw new HeddleError(
      "invalid_input",
      `Cannot use control address "${text}": https needs the tls section with certificate_file, key_file and ca_file`,
    );
  }
  if (url.protocol === "http:" && hasTls) {
    throw new HeddleError(
      "invalid_input",
      `Cannot use control address "${text}": tls is configured, so it must begin with https://`,
    );
  }
  if (url.protocol === "http:" && !isLoopback(url.hostname.replace(/^\[|\]$/g, ""))) {
    throw new HeddleError(
      "invalid_input",
      `Cannot use control address "${text}": without TLS only loopback is allowed`,
    );
  }
  return url;
}

// The name under which control was reached matters less than what its certificate says it is: a
// stolen router's certificate for the same host must not pass for control.
function demandControl(host: string, certificate: PeerCertificate): Error | undefined {
  const identity = shownCertificate(certificate)?.identity;
  if (identity?.role !== "control") {
    const who = identity === undefined ? "no Heddle identity" : formatIdentity(identity);
    return new Error(`${host} is not a control: its certificate says ${who}`);
  }
  return checkServerIdentity(host, certificate);
}
