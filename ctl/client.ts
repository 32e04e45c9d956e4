/** The admin API as ctl calls it: one connection, and errors that say what to do. */
import {
  type Client,
  Code,
  ConnectError,
  createClient,
  type Interceptor,
  type Transport,
} from "@connectrpc/connect";
import { readTlsFiles, type TlsMaterial } from "@heddle/common/mtls_files";
import { connectRpc } from "@heddle/common/rpc_client";
import { AdminService } from "@heddle/proto/gen/admin";
import { errorText, HeddleError } from "@heddle/proto/error";
import { fromRpc } from "@heddle/proto/error_code";
import { type Context, elsewhereText, isWhole } from "./config.ts";

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
  return await withTransport(context, (transport) => use(createClient(AdminService, transport)));
}

/** The same, for a service that is not AdminService. */
export async function withTransport<T>(
  context: Context,
  use: (transport: Transport) => Promise<T>,
): Promise<T> {
  try {
    return await withReached(context, use);
  } catch (error) {
    if (!(error instanceof HeddleError) || error.code !== "unavailable") throw error;
    throw new HeddleError(
      error.code,
      `${error.message} ${elsewhereText(context.elsewhere)}`.trimEnd(),
      {
        cause: error.cause,
      },
    );
  }
}

async function withReached<T>(
  context: Context,
  use: (transport: Transport) => Promise<T>,
): Promise<T> {
  const shown = await whatIsShown(context);
  const [url, ...others] = [context.url].flat();
  if (url === undefined || others.length > 0) {
    return await withLeader([context.url].flat(), shown, use);
  }
  return await connected(url, shown, use);
}

/** How an operator says who it is: by a certificate, or a token over TLS. */
interface Shown {
  readonly tls: TlsMaterial | undefined;
  readonly token: string | undefined;
}

async function whatIsShown({ tls, token_file }: Context): Promise<Shown> {
  const token = token_file === undefined ? undefined : await readToken(token_file);
  if (tls === undefined) return { tls: undefined, token };
  if (!isWhole(tls)) {
    return { tls: { cert: "", key: "", ca: await readSecret(tls.ca_file) }, token };
  }
  return { tls: await readTlsFiles(tls), token };
}

async function readToken(file: string): Promise<string> {
  const token = await readSecret(file);
  // A header takes no more: what else it is, is a file of another kind.
  if (/^[\x21-\x7e]+$/.test(token)) return token;
  const what = token === "" ? "it holds no token" : "it holds more than a token";
  throw new HeddleError("invalid_input", `Cannot use ${file}: ${what}`);
}

async function readSecret(file: string): Promise<string> {
  try {
    return (await Deno.readTextFile(file)).trim();
  } catch (error) {
    throw new HeddleError("invalid_input", `Cannot read ${file}: ${errorText(error)}`, {
      cause: error,
    });
  }
}

async function connected<T>(
  url: string,
  { tls, token }: Shown,
  use: (transport: Transport) => Promise<T>,
): Promise<T> {
  const connection = connectRpc({
    url,
    tls,
    interceptors: token === undefined ? [] : [withToken(token)],
  });
  try {
    return await use(connection.transport);
  } catch (error) {
    throw explain(error, url);
  } finally {
    connection.close();
  }
}

function withToken(token: string): Interceptor {
  return (next) => (request) => {
    request.header.set("authorization", `Bearer ${token}`);
    return next(request);
  };
}

async function withLeader<T>(
  urls: readonly string[],
  shown: Shown,
  use: (transport: Transport) => Promise<T>,
): Promise<T> {
  const others: string[] = [];
  for (const url of urls) {
    const standing = await standingOf(url, shown);
    if (standing === undefined) return await connected(url, shown, use);
    others.push(`  ${standing}`);
  }
  throw new HeddleError("unavailable", `Cannot find a control that leads:\n${others.join("\n")}`);
}

/** Undefined when it leads; otherwise what it is instead. */
async function standingOf(url: string, shown: Shown): Promise<string | undefined> {
  try {
    return await connected(url, shown, async (transport) => {
      const { leading, leader, unsure } = await createClient(AdminService, transport).getVersion(
        {},
        {
          timeoutMs: ASK_TIMEOUT_MS,
        },
      );
      if (leading) return undefined;
      const who = leader === "" ? unsure || "it does not know who leads" : `"${leader}" leads`;
      return `Control at ${url} stands by: ${who}`;
    });
  } catch (error) {
    return errorText(error);
  }
}

/** What TLS complains of, as node:tls and Deno have it, what that means here, and what to do. */
const DISTRUST: readonly (readonly [pattern: RegExp, what: string, next: string])[] = [
  [
    /self.signed certificate|unable to (get|verify)|UnknownIssuer|UNABLE_TO_/i,
    "its certificate is of no authority in ca_file",
    "Is this the right context, and ca_file of its cluster?",
  ],
  [
    /certificate has expired|certificate is not yet valid|CERT_HAS_EXPIRED|CERT_NOT_YET|NotValidYet/i,
    "its certificate does not hold now",
    "Renew it, or correct this machine's clock.",
  ],
  [
    /altnames|NotValidForName|ERR_TLS_CERT_ALTNAME/i,
    "its certificate is for other names",
    "Ask it by a name or address that is in it.",
  ],
];

function distrustOf(url: string, message: string): string | undefined {
  const [, what, next] = DISTRUST.find(([pattern]) => pattern.test(message)) ?? [];
  return what && `Cannot trust control at ${url}: ${what} (${message}). ${next}`;
}

/** The end of what is said of a certificate that was refused; doctor itself leaves it out. */
export const SEE_DOCTOR = ". Which of these: heddle doctor";

function explain(error: unknown, url: string): HeddleError {
  if (error instanceof HeddleError) return error;
  const { code, rawMessage } = ConnectError.from(error);
  const distrust = distrustOf(url, rawMessage);
  if (distrust !== undefined) return new HeddleError("unauthenticated", distrust, { cause: error });
  if (code === Code.Unauthenticated && /^the certificate was refused/.test(rawMessage)) {
    const text = `Control at ${url} did not let this heddle in: ${rawMessage}${SEE_DOCTOR}`;
    return new HeddleError("unauthenticated", text, { cause: error });
  }
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
