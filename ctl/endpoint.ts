/** Where clients ask, and with which key: what commands say that act as a client. */
import { errorText, HeddleError } from "@heddle/proto/error";
import type { CommonFlags, CtlContext } from "./command.ts";

export interface EndpointFlags extends CommonFlags {
  readonly endpoint?: string;
  readonly keyFile?: string;
}

/** Beside COMMON_FLAGS. */
export const ENDPOINT_FLAGS = {
  endpoint: {
    kind: "parsed",
    parse: String,
    optional: true,
    placeholder: "url",
    brief: "Where clients ask; by default `endpoint.url` of the context",
  },
  keyFile: {
    kind: "parsed",
    parse: String,
    optional: true,
    placeholder: "file",
    brief: "A client's key; by default `endpoint.key_file` of the context",
  },
} as const;

export interface Endpoint {
  /** Without a slash or /v1 at its end. */
  readonly base: string;
  readonly key: string | undefined;
}

/** Throws `not_found` when nothing says where clients ask, `invalid_input` for a key that cannot be read. */
export async function endpointOf(ctl: CtlContext, flags: EndpointFlags): Promise<Endpoint> {
  const configured = flags.endpoint === undefined
    ? (await ctl.loadContext(flags)).endpoint
    : undefined;
  const url = flags.endpoint ?? configured?.url;
  if (url === undefined) {
    throw new HeddleError(
      "not_found",
      "Nothing says where clients ask: give --endpoint URL, or endpoint.url in ctl's configuration",
    );
  }
  const file = flags.keyFile ?? configured?.key_file;
  return {
    base: url.replace(/\/+(v1\/*)?$/, ""),
    key: file === undefined ? undefined : await readKey(file),
  };
}

async function readKey(file: string): Promise<string> {
  try {
    return (await Deno.readTextFile(file)).trim();
  } catch (error) {
    const why = error instanceof Deno.errors.NotCapable
      ? "there is no such file, or it does not lie beside ctl's configuration; --key-file names any"
      : errorText(error);
    throw new HeddleError("invalid_input", `Cannot read the key in ${file}: ${why}`);
  }
}
