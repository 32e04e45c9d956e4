/** The deny list. Deno ignores revocation lists, so whom control lets in is control's to know. */
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { IDENTITY_NAME, type Role, type ShownCertificate } from "@heddle/common/identity";
import { BACKDATE_MS } from "@heddle/common/pki";
import { HeddleError } from "@heddle/proto/error";
import type { CertificateService, StrikeRequest } from "@heddle/proto/gen/identity";
import type { OperatorEvent } from "../../core/event.ts";
import type { Strike, World } from "../../core/world.ts";

/** Longest reason of a decision: it stands in tables. */
const REASON_CHARS_MAX = 500;

/** Control's own certificate is judged by agents and routers, which ask nobody. */
const STRIKABLE: readonly Role[] = ["agent", "router", "operator", "monitor", "attached"];

/** Why a certificate counts no more; undefined when it was not struck. */
export function struckWhy(
  struck: ReadonlyMap<string, Strike>,
  { identity, serial, notBefore }: ShownCertificate,
): string | undefined {
  const one = struck.get(`serial/${serial}`);
  if (one !== undefined) return said(one);
  if (identity === undefined) return undefined;
  const all = struck.get(`${identity.role}/${identity.name}`);
  // What the signer wrote into it lies so far back; see pki.ts.
  return all !== undefined && notBefore + BACKDATE_MS <= all.issuedBefore ? said(all) : undefined;
}

function said({ by, reason }: Strike): string {
  return `${by} struck it${reason === "" ? "" : `: ${reason}`}`;
}

export interface StrikesRpcOptions {
  /** The name of who calls; throws for a caller who is no operator. */
  readonly by: (context: HandlerContext) => string;
  readonly loop: { dispatch(event: OperatorEvent): Promise<void>; world(): World };
  /** ms since 1970, as signers know it. */
  readonly now: () => number;
  /** Has the listeners look at their connections again. */
  readonly recheck: () => void;
}

/** The handlers of CertificateService. */
export function strikesRpc(options: StrikesRpcOptions): ServiceImpl<typeof CertificateService> {
  const { by, loop, now, recheck } = options;
  return {
    async strike(request, context) {
      const struck = subjectOf(request);
      const { reason } = request;
      if (reason.length > REASON_CHARS_MAX) {
        const text =
          `Cannot strike ${struck}: the reason is longer than ${REASON_CHARS_MAX} characters`;
        throw new HeddleError("invalid_input", text);
      }
      await loop.dispatch({ kind: "strike", struck, issuedBefore: now(), by: by(context), reason });
      recheck();
      const made = loop.world().decisions.struck.get(struck);
      return made === undefined ? {} : { strike: viewOf(struck, made) };
    },
    listStrikes(_request, context) {
      by(context);
      const { struck } = loop.world().decisions;
      return { strikes: [...struck].map(([subject, strike]) => viewOf(subject, strike)) };
    },
  };
}

function viewOf(struck: string, { by, reason, at }: Strike) {
  return { struck, by, reason, atMs: BigInt(Math.round(at)) };
}

function subjectOf({ struck }: StrikeRequest): string {
  if (struck.case === "serial") {
    const serial = struck.value.toLowerCase().replaceAll(":", "");
    if (/^[0-9a-f]{2,64}$/.test(serial)) return `serial/${serial}`;
    throw new HeddleError(
      "invalid_input",
      `Cannot strike "${struck.value}": it is no serial number`,
    );
  }
  const { role = "", name = "" } = struck.value ?? {};
  if (STRIKABLE.some((each) => each === role) && IDENTITY_NAME.test(name)) return `${role}/${name}`;
  throw new HeddleError(
    "invalid_input",
    `Cannot strike "${role}/${name}": want a serial number, or ${STRIKABLE.join(", ")} and a name`,
  );
}
