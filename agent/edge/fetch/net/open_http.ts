/** The program's one client: with the token, and with the authorities that the node trusts. */
import { errorText } from "@heddle/proto/error";
import type { FetchRequest } from "../../../core/weights/documents.ts";
import { WeightsError } from "../../../core/weights/failure.ts";
import { parseSource } from "../../../core/weights/source.ts";
import { Http } from "./http.ts";

/** Throws `system_error` when a file that it needs cannot be read. */
export async function openHttp(request: FetchRequest): Promise<Http> {
  const { token_file, ca_file, stall_ms } = request;
  const token = token_file === undefined ? "" : (await textOf("token", token_file)).trim();
  const caCerts = ca_file === undefined ? [] : [await textOf("authorities", ca_file)];
  return new Http({
    token: token === "" ? undefined : token,
    tokenOrigin: tokenOrigin(request),
    caCerts,
    headMs: stall_ms,
  });
}

// The token is the hub's; on the web it is for the server that the catalog names, and for no other.
function tokenOrigin(request: FetchRequest): string {
  const source = parseSource(request.source);
  return new URL(source.kind === "web" ? source.url : request.hub).origin;
}

async function textOf(what: string, file: string): Promise<string> {
  try {
    return await Deno.readTextFile(file);
  } catch (error) {
    throw new WeightsError(
      "system_error",
      `Cannot read the ${what} in ${file}: ${errorText(error)}`,
    );
  }
}
