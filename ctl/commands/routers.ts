/** `ctl routers`: who carries traffic, and whether each has what control has published. */
import { formatDurationMs } from "@heddle/common/duration";
import { type RouterView, RouterViewSchema } from "@heddle/proto/gen/admin";
import { CALL_TIMEOUT_MS } from "../client.ts";
import { listCommand } from "../command.ts";
import { certificateEnds } from "./nodes/list.ts";
import { fieldsOf, toRecord } from "../record.ts";
import type { Listing } from "../table.ts";

export const listRouters = listCommand(
  "List routers and what they have in flight",
  async (client) =>
    routerListing((await client.listRouters({}, { timeoutMs: CALL_TIMEOUT_MS })).routers),
);

/** The table of routers. */
function routerListing(routers: readonly RouterView[]): Listing<RouterView> {
  return {
    rows: routers,
    empty:
      "No router has reported. Is heddle-router running, and does it reach control? Its log says so",
    footer: (all) => {
      const lines = all.flatMap(certificateEnds);
      return lines.length === 0 ? "" : `\nProblems:\n${lines.join("")}`;
    },
    record: (router) => toRecord(RouterViewSchema, router),
    fields: fieldsOf(RouterViewSchema),
    columns: [
      { title: "ROUTER", cell: (router) => router.name },
      { title: "STATE", cell: stateOf },
      { title: "IN FLIGHT", cell: (router) => String(router.inFlight) },
      { title: "WAITING", cell: (router) => String(router.waiting) },
      {
        title: "LAST REPORT",
        cell: (router) => `${formatDurationMs(Number(router.lastReportMs))} ago`,
      },
      { title: "VERSION", cell: (router) => router.version },
      {
        title: "APPLIED",
        cell: (router) => `${router.applied?.term ?? 0}.${router.applied?.sequence ?? 0}`,
        wide: true,
      },
    ],
  };
}

function stateOf(router: RouterView): string {
  if (!router.leased) return "lease ended";
  return router.current ? "current" : "catching up";
}
