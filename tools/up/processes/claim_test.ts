import { equal, ok } from "node:assert/strict";
import { join } from "node:path";
import { claimedBy, claimState } from "./claim.ts";

Deno.test("claimState() gives a directory to one at a time, and claimedBy() tells to whom", async () => {
  const folder = await Deno.makeTempDir({ prefix: "heddle-claim-" });
  const state = join(folder, "new");
  try {
    equal(await claimedBy(state), undefined);
    {
      using first = await claimState(state);
      ok(first);
      equal(await claimState(state), undefined);
      equal(await claimedBy(state), Deno.pid);
    }
    equal(await claimedBy(state), undefined);
    using again = await claimState(state);
    ok(again);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
