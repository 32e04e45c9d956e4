/** Striking: Deno ignores revocation lists, so who is let in no more is control's to know, and to say. */
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { IDENTITY_NAME, type Role } from "@heddle/common/identity";
import { HeddleError } from "@heddle/proto/error";
import type {
  CertificateService,
  DenyListService,
  StrikeRequest,
} from "@heddle/proto/gen/identity";
import type { OperatorEvent } from "../../core/event.ts";
import type { Strike, World } from "../../core/world.ts";
import type { DenyList } from "./deny_list.ts";

/** Longest reason of a decision: it stands in tables. */
const REASON_CHARS_MAX = 500;

/** Control's own certificate is judged by agents and routers, which ask nobody. */
const STRIKABLE: readonly Role[] = ["agent", "router", "operator", "monitor", "attached"];

export interface StrikesRpcOptions {
  /** The name of who calls; throws for a caller who is no operator. */
  readonly by: (context: HandlerContext) => string;
  readonly loop: { dispatch(event: OperatorEvent): Promise<void>; world(): World };
  /** ms since 1970, as signers know it. */
  readonly now: () => number;
  /** Has listeners look at their connections again, and agents and routers told. */
  readonly changed: () => void;
}

/** The handlers of CertificateService. */
export function strikesRpc(options: StrikesRpcOptions): ServiceImpl<typeof CertificateService> {
  const { by, loop, now, changed } = options;
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
      changed();
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

/** The handlers of DenyListService, for as long as `demandLead` throws nothing. */
export function denyListRpc(
  denied: Pick<DenyList, "watch">,
  demandLead: () => void,
): ServiceImpl<typeof DenyListService> {
  return {
    async *watchDenyList(_request, { signal }) {
      // One that stands by may not have read it yet, and an empty list would be believed.
      demandLead();
      for await (const struck of denied.watch(signal)) {
        demandLead();
        yield { denied: [...struck].map(([subject, strike]) => deniedOf(subject, strike)) };
      }
    },
  };
}

function deniedOf(struck: string, { by, reason, issuedBefore }: Strike) {
  return { struck, by, reason, issuedBeforeMs: BigInt(Math.round(issuedBefore)) };
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
