/** What all commands share: their context, their common flags, and how a list is run. */
import { buildCommand, type CommandContext } from "@stricli/core";
import type { Context } from "./config.ts";
import type { Ask } from "./ask.ts";
import { type AdminClient, withClient } from "./client.ts";
import type { Io } from "./io.ts";
import { type Listing, type Output, OUTPUTS, writeListing } from "./table.ts";

/** Given to every command by `main.ts`. */
export interface CtlContext extends CommandContext {
  readonly io: Io;
  /** Reads the configuration; `name` is the value of --context. */
  readonly loadContext: (name: string | undefined) => Promise<Context>;
  /** Aborts on Ctrl-C. */
  readonly signal: AbortSignal;
  readonly folders: Folders;
  /** All of standard input as text. */
  readonly readStdin: () => Promise<string>;
  readonly ask: Ask;
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
}

/** Flags of a decision that is recorded. */
export interface ReasonFlags extends CommonFlags {
  readonly reason?: string;
}

/** Flags of what a person is asked about first. */
export interface SureFlags extends CommonFlags {
  readonly yes: boolean;
}

export interface ListFlags extends CommonFlags {
  readonly output?: Output;
  readonly json: boolean;
}

/** Flags of every command. */
export const COMMON_FLAGS = {
  context: {
    kind: "parsed",
    parse: String,
    optional: true,
    placeholder: "name",
    brief: "Cluster to talk to, as named in ctl's configuration",
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

/** Flags of every list. */
export const LIST_FLAGS = {
  ...COMMON_FLAGS,
  output: {
    kind: "enum",
    values: OUTPUTS,
    optional: true,
    brief: "Form of the output",
  },
  json: { kind: "boolean", default: false, brief: "The same as --output json" },
} as const;

export const LIST_ALIASES = { o: "output" } as const;

/** Runs one call against control. */
export async function call<T>(
  context: CtlContext,
  flags: CommonFlags,
  use: (client: AdminClient) => Promise<T>,
): Promise<T> {
  return await withClient(await context.loadContext(flags.context), use);
}

/** Fetches a list and writes it in the form the flags ask for. */
export async function list<Row>(
  context: CtlContext,
  flags: ListFlags,
  fetch: (client: AdminClient) => Promise<Listing<Row>>,
): Promise<void> {
  const listing = await call(context, flags, fetch);
  writeListing(context.io, listing, outputOf(flags));
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

export function outputOf(flags: ListFlags): Output {
  return flags.json ? "json" : flags.output ?? "table";
}
