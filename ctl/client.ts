/** The admin API as ctl calls it: one connection, and errors that say what to do. */
import { type Client, Code, ConnectError, createClient } from "@connectrpc/connect";
import { readTlsFiles, type TlsMaterial } from "@heddle/common/mtls_files";
import { connectRpc } from "@heddle/common/rpc_client";
import { AdminService } from "@heddle/proto/gen/admin";
import { errorText, HeddleError } from "@heddle/proto/error";
import { fromRpc } from "@heddle/proto/error_code";
import type { Context } from "./config.ts";

export type AdminClient = Client<typeof AdminService>;

/** For everything but followed logs. */
export const CALL_TIMEOUT_MS = 10_000;

/** For the question which of several controls leads. */
const ASK_TIMEOUT_MS = 3_000;

/**
 * Runs `use` with a client for the context and closes it after. Of several controls it is the one
 * that leads. Throws HeddleErrors only.
 */
export async function withClient<T>(
  context: Context,
  use: (client: AdminClient) => Promise<T>,
): Promise<T> {
  const tls = context.tls === undefined ? undefined : await readTlsFiles(context.tls);
  const [url, ...others] = [context.url].flat();
  if (url === undefined || others.length > 0) {
    return await withLeader([context.url].flat(), tls, use);
  }
  return await connected(url, tls, use);
}

async function connected<T>(
  url: string,
  tls: TlsMaterial | undefined,
  use: (client: AdminClient) => Promise<T>,
): Promise<T> {
  const connection = connectRpc({ url, tls });
  try {
    return await use(createClient(AdminService, connection.transport));
  } catch (error) {
    throw explain(error, url);
  } finally {
    connection.close();
  }
}

async function withLeader<T>(
  urls: readonly string[],
  tls: TlsMaterial | undefined,
  use: (client: AdminClient) => Promise<T>,
): Promise<T> {
  const others: string[] = [];
  for (const url of urls) {
    const standing = await standingOf(url, tls);
    if (standing === undefined) return await connected(url, tls, use);
    others.push(`  ${standing}`);
  }
  throw new HeddleError("unavailable", `Cannot find a control that leads:\n${others.join("\n")}`);
}

/** Undefined when it leads; otherwise what it is instead. */
async function standingOf(url: string, tls: TlsMaterial | undefined): Promise<string | undefined> {
  try {
    return await connected(url, tls, async (client) => {
      const { leading, leader, unsure } = await client.getVersion({}, {
        timeoutMs: ASK_TIMEOUT_MS,
      });
      if (leading) return undefined;
      const who = leader === "" ? unsure || "it does not know who leads" : `"${leader}" leads`;
      return `Control at ${url} stands by: ${who}`;
    });
  } catch (error) {
    return errorText(error);
  }
}

function explain(error: unknown, url: string): HeddleError {
  if (error instanceof HeddleError) return error;
  const { code, rawMessage } = ConnectError.from(error);
  if (code === Code.Unavailable || code === Code.DeadlineExceeded || code === Code.Aborted) {
    return new HeddleError(
      "unavailable",
      `Cannot reach control at ${url}: ${rawMessage}. Is it running, and is this the ` +
        "right context?",
      { cause: error },
    );
  }
  if (code === Code.Unknown || code === Code.Internal) {
    return new HeddleError("protocol", `Control at ${url} answered: ${rawMessage}`, {
      cause: error,
    });
  }
  // What control says to an operator needs no frame around it.
  return new HeddleError(fromRpc(error, "").code, rawMessage, { cause: error });
}
