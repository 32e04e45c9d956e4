/** How the commands about keys, limits and usage call control. */
import { type Client, createClient } from "@connectrpc/connect";
import { TenancyService } from "@heddle/proto/gen/tenancy";
import { withTransport } from "../../client.ts";
import type { CommonFlags, CtlContext, ListFlags } from "../../command.ts";
import { outputOf } from "../../command.ts";
import { type Listing, writeListing } from "../../table.ts";
import { show } from "../../watch.ts";

export type TenancyClient = Client<typeof TenancyService>;

/** Runs one call against control. */
export async function callTenancy<T>(
  context: CtlContext,
  flags: CommonFlags,
  use: (client: TenancyClient) => Promise<T>,
): Promise<T> {
  return await withTransport(
    await context.loadContext(flags),
    (transport) => use(createClient(TenancyService, transport)),
  );
}

/** Fetches a list and writes it in the form the flags ask for. */
export async function listTenancy<Row>(
  context: CtlContext,
  flags: ListFlags,
  fetch: (client: TenancyClient) => Promise<Listing<Row>>,
): Promise<void> {
  await show(context, flags, async () => {
    const listing = await callTenancy(context, flags, fetch);
    return (io) => writeListing(io, listing, outputOf(flags));
  });
}
