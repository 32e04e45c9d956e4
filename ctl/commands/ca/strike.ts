/** `ctl ca strike` and `ctl ca struck`: certificates that count no more before they end. */
import { buildCommand } from "@stricli/core";
import { CertificateService, type StrikeView } from "@heddle/proto/gen/identity";
import { CALL_TIMEOUT_MS } from "../../client.ts";
import {
  callService,
  COMMON_FLAGS,
  type CtlContext,
  LIST_ALIASES,
  LIST_FLAGS,
  type ListFlags,
  outputOf,
  type SureFlags,
  YES_FLAG,
} from "../../command.ts";
import { confirm } from "../../io.ts";
import { type Listing, writeListing } from "../../table.ts";
import { formatTime } from "../../time_text.ts";
import { show } from "../../watch.ts";

interface StrikeFlags extends SureFlags {
  readonly reason: string;
}

export const strike = buildCommand({
  docs: {
    brief: "Let a certificate in no more, or every one that somebody was given until now",
    fullDescription: "A serial number strikes one certificate, or one join token by its id; " +
      "agent/NAME, router/NAME, operator/NAME, monitor/NAME or attached/DEPLOYMENT every one given " +
      "out until now. What stands on them is ended. " +
      "A certificate that is issued later is good.",
  },
  parameters: {
    positional: {
      kind: "tuple",
      parameters: [{ parse: String, placeholder: "serial|role/name", brief: "What to strike" }],
    },
    flags: {
      ...COMMON_FLAGS,
      ...YES_FLAG,
      reason: { kind: "parsed", parse: String, default: "", brief: "Why; it is kept on record" },
    },
  },
  async func(this: CtlContext, flags: StrikeFlags, what: string) {
    const [role = "", name] = what.split("/", 2);
    const struck = name === undefined
      ? { case: "serial" as const, value: what }
      : { case: "holder" as const, value: { role, name } };
    await confirm(
      this,
      flags,
      `Strike ${what}? What stands on it is ended, and that cannot be taken back.`,
    );
    const made = await callService(
      this,
      { flags, service: CertificateService },
      (client) => client.strike({ struck, reason: flags.reason }, { timeoutMs: CALL_TIMEOUT_MS }),
    );
    this.io.out(`${made.strike?.struck ?? what}: struck; what stood on it is ended\n`);
  },
});

export const struck = buildCommand({
  docs: { brief: "List what was struck" },
  parameters: { flags: LIST_FLAGS, aliases: LIST_ALIASES },
  async func(this: CtlContext, flags: ListFlags) {
    await show(this, flags, async () => {
      const { strikes } = await callService(
        this,
        { flags, service: CertificateService },
        (client) => client.listStrikes({}, { timeoutMs: CALL_TIMEOUT_MS }),
      );
      return (io) => writeListing(io, struckListing(strikes), outputOf(flags));
    });
  },
});

function struckListing(strikes: readonly StrikeView[]): Listing<StrikeView> {
  return {
    rows: strikes,
    empty: "Nothing was struck. What lets a certificate in no more: heddle ca strike ROLE/NAME",
    record: (each) => ({
      struck: each.struck,
      by: each.by,
      reason: each.reason,
      at: `${new Date(Number(each.atMs)).toISOString().slice(0, 19)}Z`,
    }),
    fields: ["struck", "by", "reason", "at"],
    columns: [
      { title: "STRUCK", cell: ({ struck }) => struck },
      { title: "BY", cell: ({ by }) => by },
      { title: "AT", cell: ({ atMs }) => formatTime(Number(atMs)) },
      { title: "REASON", cell: ({ reason }) => reason },
    ],
  };
}
