/** Paths that can stand in a list of permissions, which Deno splits at commas. */
import { dirname } from "node:path";
import { HeddleError } from "@heddle/proto/error";
import type { UpPlan } from "./node.ts";

/** Throws `invalid_input` for a folder that a program could not be allowed to read. */
export function demandListablePaths(state: string, plan: UpPlan): void {
  const catalog = "file" in plan.catalog ? [dirname(plan.catalog.file)] : [];
  const folders = [state, ...catalog, ...plan.nodes.flatMap((node) => node.modelDirs)];
  const wrong = folders.find((folder) => /[,\p{Cc}]/u.test(folder));
  if (wrong === undefined) return;
  throw new HeddleError(
    "invalid_input",
    `Cannot use ${JSON.stringify(wrong)}: ` +
      "no comma or control character may be in the path of a folder that Heddle uses",
  );
}
