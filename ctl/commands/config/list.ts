/** `ctl config`: the contexts that there are. */
import { buildCommand } from "@stricli/core";
import {
  type CtlContext,
  LIST_ALIASES,
  outputOf,
  WATCH_FLAGS,
  type WatchFlags,
} from "../../command.ts";
import { type Context, isWhole } from "../../config.ts";
import type { CtlConfigFile } from "../../config_file.ts";
import { type Listing, writeListing } from "../../table.ts";
import { show } from "../../watch.ts";

export const listContexts = buildCommand({
  docs: { brief: "List the contexts of the configuration file" },
  parameters: { flags: WATCH_FLAGS, aliases: LIST_ALIASES },
  async func(this: CtlContext, flags: WatchFlags) {
    await show(this, flags, async () => {
      const listing = contextListing(await this.loadConfig());
      return (io) => writeListing(io, listing, outputOf(flags));
    });
  },
});

/** The table of contexts. */
export function contextListing({ file, config }: CtlConfigFile): Listing<Context> {
  const current = ({ name }: Context) => name === config.current;
  return {
    rows: config.contexts,
    // The schema wants one.
    empty: "There is none",
    fields: ["name", "current", "url", "shows", "endpoint"],
    record: (context) => ({
      name: context.name,
      current: current(context),
      url: [context.url].flat(),
      shows: shown(context),
      endpoint: context.endpoint?.url ?? null,
    }),
    footer: () => `\nFrom ${file}\n`,
    columns: [
      { title: "CURRENT", cell: (context) => current(context) ? "*" : "" },
      { title: "CONTEXT", cell: ({ name }) => name },
      { title: "CONTROL", cell: ({ url }) => [url].flat().join(", ") },
      { title: "SHOWS", cell: shown },
      { title: "ENDPOINT", cell: ({ endpoint }) => endpoint?.url ?? "" },
      { title: "FILE", cell: shownFile, wide: true },
    ],
  };
}

/** How this operator says who it is. */
function shown({ tls, token_file: token }: Context): string {
  if (token !== undefined) return "token";
  return tls !== undefined && isWhole(tls) ? "certificate" : "nothing";
}

function shownFile({ tls, token_file: token }: Context): string {
  return token ?? (tls !== undefined && isWhole(tls) ? tls.certificate_file : "");
}
