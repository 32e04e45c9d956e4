/** Whether a port can be opened, found out without opening it. */
import { connect, createServer } from "node:net";

/** Far more than a local port takes to answer. */
const ANSWER_MS = 1_000;

/**
 * Why `host:port` cannot be listened on, as far as can be told; undefined when nothing speaks against it. The port
 * itself is never opened, because whoever watches it would take that for an engine that is up.
 */
export async function portProblem(host: string, port: number): Promise<string | undefined> {
  const problem = await addressProblem(host);
  if (problem !== undefined || port === 0) return problem;
  return await answers(host, port) ? "address already in use" : undefined;
}

function addressProblem(host: string): Promise<string | undefined> {
  const { promise, resolve } = Promise.withResolvers<string | undefined>();
  const server = createServer();
  server.once("error", (error) => resolve(error.message));
  server.listen({ host, port: 0 }, () => server.close(() => resolve(undefined)));
  return promise;
}

async function answers(host: string, port: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const socket = connect({ host, port }, () => resolve(true));
  socket.once("error", () => resolve(false));
  socket.setTimeout(ANSWER_MS, () => resolve(false));
  const answered = await promise;
  socket.destroy();
  return answered;
}
