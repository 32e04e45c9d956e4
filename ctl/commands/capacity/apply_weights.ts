/** Sets the weights of a model's profiles by what was measured, through the catalog. */
import { CapacityService, type ModelCapacity } from "@heddle/proto/gen/capacity";
import { HeddleError } from "@heddle/proto/error";
import { doubtWords } from "../../capacity/measurement_words.ts";
import { weightChanges, withWeights } from "../../capacity/weights.ts";
import { CALL_TIMEOUT_MS } from "../../client.ts";
import { call, callService, type CtlContext, type SureFlags } from "../../command.ts";
import { confirm } from "../../io.ts";
import { visible } from "../../table.ts";

/** Of the calls that look ahead at a large fleet. */
const CAPACITY_TIMEOUT_MS = 60_000;

/** What complaints call the text. */
const TEXT_NAME = "the catalog with measured weights";

export async function fetchCapacity(
  ctl: CtlContext,
  flags: SureFlags | { readonly context?: string },
  asked: { readonly model: string; readonly shape: string },
): Promise<readonly ModelCapacity[]> {
  const { models } = await callService(
    ctl,
    { flags, service: CapacityService },
    (client) => client.getCapacity(asked, { timeoutMs: CAPACITY_TIMEOUT_MS }),
  );
  return models;
}

/** Asks first, unless the flags say yes. */
export async function applyWeights(
  ctl: CtlContext,
  flags: SureFlags,
  asked: { readonly model: string; readonly shape: string },
): Promise<void> {
  const [capacity] = await fetchCapacity(ctl, flags, asked);
  if (capacity === undefined) throw new HeddleError("not_found", `No model "${asked.model}"`);
  const { model } = capacity;
  const changes = weightChanges(capacity);
  if (changes.length === 0) {
    ctl.io.out(`The weights of ${visible(model)} are what was measured already\n`);
    return;
  }
  for (const { profile, from, to } of changes) {
    ctl.io.out(`${visible(model)} ${visible(profile)}: weight ${from} → ${to}\n`);
  }
  ctl.io.out(doubtWords(capacity));
  await confirm(ctl, flags, "Apply the catalog with these weights? No engine is restarted.");
  await call(ctl, flags, async (client) => {
    const { text, file } = await client.getCatalog({ text: true }, { timeoutMs: CALL_TIMEOUT_MS });
    const request = { text: withWeights(text, model, changes), file: TEXT_NAME };
    const { applied, revision, waitDetail } = await client.applyCatalog(
      request,
      { timeoutMs: CALL_TIMEOUT_MS },
    );
    if (!applied) throw new HeddleError("failed_precondition", `Not applied: ${waitDetail}`);
    ctl.io.out(
      `Applied as revision ${revision}. ${visible(file)} still has the weights of before: write ` +
        "them there too, or they come back with its next change\n",
    );
  });
}
