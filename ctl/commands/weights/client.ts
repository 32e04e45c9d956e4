/** How the commands about weights call control. */
import { type Client, createClient } from "@connectrpc/connect";
import { WeightsService } from "@heddle/proto/gen/weights";
import { withTransport } from "../../client.ts";
import type { CommonFlags, CtlContext } from "../../command.ts";

/** A node reads a few files over the network, or removes a terabyte. */
export const SLOW_CALL_MS = 320_000;

/** Runs one call against control. */
export async function callWeights<T>(
  context: CtlContext,
  flags: CommonFlags,
  use: (client: Client<typeof WeightsService>) => Promise<T>,
): Promise<T> {
  return await withTransport(
    await context.loadContext(flags),
    (transport) => use(createClient(WeightsService, transport)),
  );
}
