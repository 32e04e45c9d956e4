/** Opens a connection to an engine, plain or TLS, within a time. */
import { connect as connectTcp, isIP, type Socket } from "node:net";
import { connect as connectTls } from "node:tls";
import { deadline } from "./upstream_deadline.ts";
import { UpstreamError } from "./upstream_error.ts";
import { bareHost, type UpstreamTarget } from "./upstream_request.ts";

/** After so much silence the system asks the other machine whether the connection still stands. */
const PROBE_AFTER_MS = 30_000;

/**
 * A connected socket (after the handshake, for TLS). Throws `connect_refused`, `connect_failed`,
 * `connect_timeout`, `tls_failed` or `aborted`; nothing stays open then.
 */
export function connect(
  target: UpstreamTarget,
  timeoutMs: number,
  signal: AbortSignal,
): Promise<Socket> {
  const where = `${target.host}:${target.port}`;
  const { promise, resolve, reject } = Promise.withResolvers<Socket>();
  const socket = open(target);
  let reached = false;
  const fail = (error: UpstreamError): void => {
    cleanUp();
    // Errors that come after this have no one to tell; without a listener they would end the process.
    socket.on("error", () => {});
    socket.destroy();
    reject(error);
  };
  const onReady = (): void => {
    cleanUp();
    socket.setNoDelay(true);
    // A machine that has gone without a word says nothing for ever; an answer may take that long.
    socket.setKeepAlive(true, PROBE_AFTER_MS);
    resolve(socket);
  };
  const onReached = (): void => {
    reached = true;
    if (target.tls === undefined) onReady();
  };
  const onError = (error: unknown): void => fail(connectError(where, error, reached));
  const onClose = (): void => fail(connectError(where, new Error("closed"), reached));
  const onAbort = (): void => fail(new UpstreamError("aborted", `Stopped connecting to ${where}`));
  const timer = deadline(timeoutMs, () => {
    fail(
      new UpstreamError(
        "connect_timeout",
        `Cannot connect to ${where}: no answer in ${timeoutMs} ms`,
      ),
    );
  });
  const cleanUp = (): void => {
    timer.clear();
    signal.removeEventListener("abort", onAbort);
    socket.off("connect", onReached).off("secureConnect", onReady).off("error", onError)
      .off("close", onClose);
  };
  socket.on("connect", onReached).on("error", onError).on("close", onClose);
  if (target.tls !== undefined) socket.on("secureConnect", onReady);
  signal.addEventListener("abort", onAbort);
  return promise;
}

function open(target: UpstreamTarget): Socket {
  const host = bareHost(target.host);
  if (target.tls === undefined) return connectTcp({ host, port: target.port });
  const { serverName, ca } = target.tls;
  // An address is no name to ask for, but it is still what the certificate is checked against.
  const name = serverName ?? (isIP(host) === 0 ? host : undefined);
  return connectTls({
    host,
    port: target.port,
    ALPNProtocols: ["http/1.1"],
    minVersion: "TLSv1.2",
    ...(name === undefined ? {} : { servername: name }),
    ...(ca === undefined ? {} : { ca }),
  });
}

function connectError(where: string, error: unknown, reached: boolean): UpstreamError {
  const text = error instanceof Error ? error.message : String(error);
  const reason = reached
    ? "tls_failed"
    : codeOf(error) === "ECONNREFUSED"
    ? "connect_refused"
    : "connect_failed";
  return new UpstreamError(reason, `Cannot connect to ${where}: ${text}`, { cause: error });
}

function codeOf(error: unknown): unknown {
  if (typeof error !== "object" || error === null) return undefined;
  // Several addresses were tried: the errors agree, or the first one speaks for them.
  if (error instanceof AggregateError) return codeOf(error.errors[0]);
  return "code" in error ? error.code : undefined;
}
