import { equal, ok } from "node:assert/strict";
import { logKeeperArguments, logKeeperOf } from "./log_keeper.ts";

const FOLDER = "/var/lib/heddle/agent/shards";

Deno.test("logKeeperArguments() start one unit for a folder, which may write that folder alone", () => {
  const args = logKeeperArguments({
    shim: "/opt/h/bin/heddle-shim",
    folder: FOLDER,
    slice: "s.slice",
  });
  ok(args.includes("--unit=heddle-logs-var-lib-heddle-agent-shards.service"));
  ok(args.includes(`--property=ReadWritePaths="${FOLDER}"`));
  ok(args.includes("--property=CapabilityBoundingSet="));
  equal(
    args.slice(args.indexOf("--") + 1).join(" "),
    `/opt/h/bin/heddle-shim keep-logs ${FOLDER} 134217728`,
  );
});

Deno.test("logKeeperOf() names a unit whatever the folder is called", () => {
  equal(logKeeperOf("/var/lib/heddle-%n%2F$x-1"), "heddle-logs-var-lib-heddle-n-2F-x-1.service");
  ok(logKeeperOf(`/${"very-long/".repeat(60)}x`).length <= 255);
  ok(logKeeperOf(`/${"very-long/".repeat(60)}x`).endsWith(".service"));
});
