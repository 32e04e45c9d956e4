/** `ctl ca strike` and `ctl ca struck`: certificates that count no more before they end. */
import { buildCommand } from "@stricli/core";
import { createClient } from "@connectrpc/connect";
import { CertificateService, type StrikeView } from "@heddle/proto/gen/identity";
import { CALL_TIMEOUT_MS } from "../../client.ts";
import { COMMON_FLAGS, type CommonFlags, type CtlContext } from "../../command.ts";
import { LIST_ALIASES, LIST_FLAGS, type ListFlags, outputOf } from "../../command.ts";
import { withTransport } from "../../client.ts";
import { type Listing, writeListing } from "../../table.ts";

interface StrikeFlags extends CommonFlags {
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
      reason: { kind: "parsed", parse: String, default: "", brief: "Why; it is kept on record" },
    },
  },
  async func(this: CtlContext, flags: StrikeFlags, what: string) {
    const [role = "", name] = what.split("/", 2);
    const struck = name === undefined
      ? { case: "serial" as const, value: what }
      : { case: "holder" as const, value: { role, name } };
    const context = await this.loadContext(flags);
    const made = await withTransport(
      context,
      (transport) =>
        createClient(CertificateService, transport)
          .strike({ struck, reason: flags.reason }, { timeoutMs: CALL_TIMEOUT_MS }),
    );
    this.io.out(`${made.strike?.struck ?? what}: struck; what stood on it is ended\n`);
  },
});

export const struck = buildCommand({
  docs: { brief: "List what was struck" },
  parameters: { flags: LIST_FLAGS, aliases: LIST_ALIASES },
  async func(this: CtlContext, flags: ListFlags) {
    const context = await this.loadContext(flags);
    const { strikes } = await withTransport(
      context,
      (transport) =>
        createClient(CertificateService, transport)
          .listStrikes({}, { timeoutMs: CALL_TIMEOUT_MS }),
    );
    writeListing(this.io, listing(strikes), outputOf(flags));
  },
});

function listing(strikes: readonly StrikeView[]): Listing<StrikeView> {
  const at = ({ atMs }: StrikeView) => new Date(Number(atMs)).toISOString().slice(0, 19);
  return {
    rows: strikes,
    empty: "Nothing was struck",
    record: (each) => ({
      struck: each.struck,
      by: each.by,
      reason: each.reason,
      at: `${at(each)}Z`,
    }),
    columns: [
      { title: "STRUCK", cell: ({ struck }) => struck },
      { title: "BY", cell: ({ by }) => by },
      { title: "AT", cell: at },
      { title: "REASON", cell: ({ reason }) => reason },
    ],
  };
}
