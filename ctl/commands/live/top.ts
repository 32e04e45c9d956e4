/** `ctl top`: what is going on, live, on one screen. */
import { buildCommand } from "@stricli/core";
import { AdminService } from "@heddle/proto/gen/admin";
import { LiveService } from "@heddle/proto/gen/live";
import { createClient } from "@connectrpc/connect";
import { CALL_TIMEOUT_MS, withTransport } from "../../client.ts";
import { COMMON_FLAGS, type CommonFlags, type CtlContext } from "../../command.ts";
import { formatTop, type Moment, topRecord } from "../../live/top_screen.ts";
import { SCREEN_FLAGS, type ScreenFlags, screenForm, writeScreen } from "../../live/screen.ts";
import { show } from "../../watch.ts";

/** Where nobody says how high the screen is. */
const LINES = 40;

interface TopFlags extends CommonFlags, ScreenFlags {
  readonly once: boolean;
}

export const top = buildCommand({
  docs: {
    brief: "The busiest models, nodes and replicas, live",
    fullDescription: "Drawn anew every 2 s until Ctrl-C; once in a pipe, with --once, or as JSON.",
  },
  parameters: {
    flags: {
      ...COMMON_FLAGS,
      ...SCREEN_FLAGS,
      once: { kind: "boolean", default: false, brief: "Show it once, and end" },
    },
    aliases: { o: "output" },
  },
  async func(this: CtlContext, flags: TopFlags) {
    const output = screenForm(flags);
    const watch = this.io.terminal && !flags.once && output === "text";
    await show(this, { watch }, async () => {
      const moment = await momentOf(this, flags);
      return (io) =>
        writeScreen(io, output, {
          text: () => formatTop(moment, this.io.lines?.() ?? LINES),
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
