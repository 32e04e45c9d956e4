/** The admin API as ctl calls it: one connection, and errors that say what to do. */
import { type Client, Code, ConnectError, createClient } from "@connectrpc/connect";
import { readTlsFiles } from "@heddle/common/mtls_files";
import { connectRpc } from "@heddle/common/rpc_client";
import { AdminService } from "@heddle/proto/gen/admin";
import { HeddleError } from "@heddle/proto/error";
import { fromRpc } from "@heddle/proto/error_code";
import type { Context } from "./config.ts";

export type AdminClient = Client<typeof AdminService>;

/** For everything but followed logs. */
export const CALL_TIMEOUT_MS = 10_000;

/** Runs `use` with a client for the context and closes it after. Throws HeddleErrors only. */
export async function withClient<T>(
  context: Context,
  use: (client: AdminClient) => Promise<T>,
): Promise<T> {
  const tls = context.tls === undefined ? undefined : await readTlsFiles(context.tls);
  const connection = connectRpc({ url: context.url, tls });
  try {
    return await use(createClient(AdminService, connection.transport));
  } catch (error) {
    throw explain(error, context);
  } finally {
    connection.close();
  }
}

function explain(error: unknown, context: Context): HeddleError {
  if (error instanceof HeddleError) return error;
  const { code, rawMessage } = ConnectError.from(error);
  if (code === Code.Unavailable || code === Code.DeadlineExceeded || code === Code.Aborted) {
    return new HeddleError(
      "unavailable",
      `Cannot reach control at ${context.url}: ${rawMessage}. Is it running, and is this the ` +
        "right context?",
      { cause: error },
    );
  }
  if (code === Code.Unknown || code === Code.Internal) {
    return new HeddleError("protocol", `Control at ${context.url} answered: ${rawMessage}`, {
      cause: error,
    });
  }
  // What control says to an operator needs no frame around it.
  return new HeddleError(fromRpc(error, "").code, rawMessage, { cause: error });
}
