/**
 * Who calls, checked against what they say they are. With TLS the certificate decides; on plaintext
 * loopback there is none, and names are taken as they are given.
 */
import type { HandlerContext } from "@connectrpc/connect";
import { HeddleError } from "@heddle/proto/error";
import { formatIdentity, type Identity, IDENTITY_NAME, type Role } from "@heddle/common/identity";
import { PEER } from "@heddle/common/rpc_server";
import { TOKEN_HOLDER } from "./identity/operators.ts";

/** What callers are checked against. */
export interface Realm {
  readonly cluster: string;
  /** False only on loopback. */
  readonly secured: boolean;
}

/** The operator's name where no certificate can say it. */
const LOCAL_OPERATOR = "local";

/** Checks that the caller is the agent of `node`. Throws `permission_denied` or `invalid_input`. */
export function demandAgent(context: HandlerContext, realm: Realm, node: string): void {
  if (!IDENTITY_NAME.test(node)) {
    throw new HeddleError(
      "invalid_input",
      `Cannot register node "${node}": a name is 1 to 64 letters, digits, ".", "_" and "-"`,
    );
  }
  const identity = identityOf(context, realm, "agent");
  if (identity === undefined || identity.name === node) return;
  throw new HeddleError(
    "permission_denied",
    `Cannot register node "${node}": the certificate is that of node "${identity.name}"`,
  );
}

/**
 * Checks that the caller is the router it says it is. A host's routers "host/1", "host/2" may use
 * one certificate named "host", or each its own named "host-1". Throws `permission_denied` or
 * `invalid_input`.
 */
export function demandRouter(context: HandlerContext, realm: Realm, router: string): void {
  const parts = router.split("/");
  if (parts.length > 2 || !parts.every((part) => IDENTITY_NAME.test(part))) {
    throw new HeddleError(
      "invalid_input",
      `Cannot serve router "${router}": want a name such as "host/1"`,
    );
  }
  const identity = identityOf(context, realm, "router");
  if (identity === undefined) return;
  if ([router, parts[0], parts.join("-")].includes(identity.name)) return;
  throw new HeddleError(
    "permission_denied",
    `Cannot serve router "${router}": the certificate is that of router "${identity.name}"`,
  );
}

/** The name under which an operator's decision is recorded. */
export function operatorName(context: HandlerContext, realm: Realm): string {
  const holder = context.values.get(TOKEN_HOLDER);
  if (holder !== undefined) return holder.name;
  return identityOf(context, realm, "operator")?.name ?? LOCAL_OPERATOR;
}

// Undefined only without TLS.
function identityOf(context: HandlerContext, realm: Realm, role: Role): Identity | undefined {
  const { identity } = context.values.get(PEER);
  if (!realm.secured) return undefined;
  if (identity?.role === role && identity.cluster === realm.cluster) return identity;
  const who = identity === undefined ? "says no Heddle identity" : `is ${formatIdentity(identity)}`;
  throw new HeddleError(
    "permission_denied",
    `Cannot call ${context.method.name}: the certificate ${who}, want role ${role} ` +
      `of cluster "${realm.cluster}"`,
  );
}
