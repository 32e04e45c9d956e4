/** `ctl top`: what is going on, live, on one screen. */
import { buildCommand } from "@stricli/core";
import { AdminService } from "@heddle/proto/gen/admin";
import { LiveService } from "@heddle/proto/gen/live";
import { createClient } from "@connectrpc/connect";
import { CALL_TIMEOUT_MS, withTransport } from "../../client.ts";
import {
  type CommonFlags,
  type CtlContext,
  LIST_ALIASES,
  LIST_FLAGS,
  type ListFlags,
} from "../../command.ts";
import { formatTop, type Moment, topRecord } from "../../live/top_screen.ts";
import { screenForm, writeScreen } from "../../live/screen.ts";
import { show } from "../../watch.ts";

/** Where nobody says how high the screen is. */
const LINES = 40;

interface TopFlags extends ListFlags {
  readonly once: boolean;
}

export const top = buildCommand({
  docs: {
    brief: "The busiest models, nodes and replicas, live",
    fullDescription:
      "Drawn anew every 2 s until Ctrl-C; once in a pipe, with --once, or for machines, where " +
      "--watch does not say otherwise.",
  },
  parameters: {
    flags: {
      ...LIST_FLAGS,
      once: { kind: "boolean", default: false, brief: "Show it once, and end" },
    },
    aliases: LIST_ALIASES,
  },
  async func(this: CtlContext, flags: TopFlags) {
    const output = screenForm(flags);
    if (flags.watch && flags.once) {
      throw new SyntaxError("--watch goes on and --once ends: leave one of them out");
    }
    const watch = flags.watch || this.io.terminal && !flags.once && output === "table";
    await show(this, { watch }, async () => {
      const moment = await momentOf(this, flags);
      return (io) =>
        writeScreen(io, output, {
          text: () => formatTop(moment, this.io.size?.()?.lines ?? LINES),
          record: () => topRecord(moment),
        });
    });
  },
});

async function momentOf(ctl: CtlContext, flags: CommonFlags): Promise<Moment> {
  const options = { timeoutMs: CALL_TIMEOUT_MS };
  return await withTransport(await ctl.loadContext(flags), async (transport) => {
    const admin = createClient(AdminService, transport);
    const [{ cluster }, { models }, { nodes }, { replicas }, traffic] = await Promise.all([
      admin.getVersion({}, options),
      admin.listModels({}, options),
      admin.listNodes({}, options),
      admin.listReplicas({}, options),
      createClient(LiveService, transport).listTraffic({}, options),
    ]);
    return { cluster, models, nodes, replicas, traffic: traffic.models, all: traffic.all };
  });
}
