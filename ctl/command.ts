/** What all commands share: their context, their common flags, and how a list is run. */
import { buildCommand, type CommandContext } from "@stricli/core";
import type { Context } from "./config.ts";
import type { CtlConfigFile } from "./config_file.ts";
import type { DescService } from "@bufbuild/protobuf";
import { type Client, createClient } from "@connectrpc/connect";
import { type AdminClient, withClient, withTransport } from "./client.ts";
import type { Ask, Io } from "./io.ts";
import { type Listing, type Output, OUTPUTS, writeListing } from "./table.ts";
import { show } from "./watch.ts";

/** Given to every command by `main.ts`. */
export interface CtlContext extends CommandContext {
  readonly io: Io;
  /** Reads the configuration, as the flags have it. */
  readonly loadContext: (flags: CommonFlags) => Promise<Context>;
  /** All of the configuration, and where it is. */
  readonly loadConfig: () => Promise<CtlConfigFile>;
  /** Aborts on Ctrl-C. */
  readonly signal: AbortSignal;
  readonly folders: Folders;
  /** All of standard input as text. */
  readonly readStdin: () => Promise<string>;
  /** Standard input and output for what is no text. */
  readonly bytes: Bytes;
  readonly ask: Ask;
  /** What was asked is done, and what it found is bad: the exit code is to say so. */
  readonly fail: () => void;
}

export interface Bytes {
  readonly in: () => AsyncIterable<Uint8Array<ArrayBuffer>>;
  /** Throws when nobody reads any more. */
  readonly out: (bytes: Uint8Array) => void;
}

/** Where the certificate commands read and write; the launcher permits these folders alone. */
export interface Folders {
  /** HEDDLE_CA, or ~/.config/heddle/ca. */
  readonly authority: string;
  /** HEDDLE_TLS: the folder of one key and its certificate. */
  readonly certificates: string | undefined;
}

export interface CommonFlags {
  readonly context?: string;
  readonly tokenFile?: string;
}

/** Flags of a decision that is recorded. */
export interface ReasonFlags extends CommonFlags {
  readonly reason?: string;
}

/** Flags of what a person is asked about first. */
export interface SureFlags extends CommonFlags {
  readonly yes: boolean;
}

export interface FormFlags {
  readonly output?: Output;
  readonly json: boolean;
}

export interface WatchFlags extends FormFlags {
  readonly watch: boolean;
}

export interface ScreenFlags extends CommonFlags, FormFlags {}

export interface ListFlags extends CommonFlags, WatchFlags {}

/** Flags of every command. */
export const COMMON_FLAGS = {
  context: {
    kind: "parsed",
    parse: String,
    optional: true,
    placeholder: "name",
    brief: "Cluster to talk to, as named in ctl's configuration",
  },
  tokenFile: {
    kind: "parsed",
    parse: String,
    optional: true,
    placeholder: "file",
    brief: "Show the operator's token that this file holds, and no certificate",
  },
} as const;

/** Beside COMMON_FLAGS. */
export const REASON_FLAG = {
  reason: {
    kind: "parsed",
    parse: String,
    optional: true,
    placeholder: "text",
    brief: "Why, for those who come after you",
  },
} as const;

/** Beside COMMON_FLAGS. */
export const YES_FLAG = {
  yes: { kind: "boolean", default: false, brief: "Do not ask" },
} as const;

/** Beside COMMON_FLAGS: the form of what is written. */
export const FORM_FLAGS = {
  output: {
    kind: "enum",
    values: OUTPUTS,
    optional: true,
    brief: "Form of the output",
  },
  json: { kind: "boolean", default: false, brief: "The same as --output json" },
} as const;

export const FORM_ALIASES = { o: "output" } as const;

/** Flags of what control answers once, and that is no list. */
export const SCREEN_FLAGS = { ...COMMON_FLAGS, ...FORM_FLAGS } as const;

/** Flags of a list of what lies on this machine. */
export const WATCH_FLAGS = {
  ...FORM_FLAGS,
  watch: { kind: "boolean", default: false, brief: "Show it anew every 2 s, until Ctrl-C" },
} as const;

/** Flags of every list that control gives. */
export const LIST_FLAGS = { ...COMMON_FLAGS, ...WATCH_FLAGS } as const;

export const LIST_ALIASES = { ...FORM_ALIASES, w: "watch" } as const;

/** Runs one call against control. */
export async function call<T>(
  context: CtlContext,
  flags: CommonFlags,
  use: (client: AdminClient) => Promise<T>,
): Promise<T> {
  return await withClient(await context.loadContext(flags), use);
}

/** The same, of another service than AdminService. */
export async function callService<S extends DescService, T>(
  context: CtlContext,
  { flags, service }: { readonly flags: CommonFlags; readonly service: S },
  use: (client: Client<S>) => Promise<T>,
): Promise<T> {
  return await withTransport(
    await context.loadContext(flags),
    (transport) => use(createClient(service, transport)),
  );
}

/** Fetches a list and writes it in the form the flags ask for. */
export async function list<Row>(
  context: CtlContext,
  flags: ListFlags,
  fetch: (client: AdminClient) => Promise<Listing<Row>>,
): Promise<void> {
  await show(context, flags, async () => {
    const listing = await call(context, flags, fetch);
    return (io) => writeListing(io, listing, outputOf(flags));
  });
}

/** A command that fetches a list and takes no flags beyond those of every list. */
export function listCommand<Row>(
  brief: string,
  fetch: (client: AdminClient) => Promise<Listing<Row>>,
) {
  return buildCommand({
    docs: { brief },
    parameters: { flags: LIST_FLAGS, aliases: LIST_ALIASES },
    async func(this: CtlContext, flags: ListFlags) {
      await list(this, flags, fetch);
    },
  });
}

/** The form that the flags ask for. */
export function outputOf(flags: FormFlags): Output {
  return flags.json ? "json" : flags.output ?? "table";
}
