/**
 * Who may do what on the admin listener. An operator's certificate may do everything; a bearer token
 * what its role may. Tokens are kept as hashes, so that reading the file lets nobody in: they have
 * 256 random bits, for which a fast hash is enough.
 */
import { createContextKey, type Interceptor } from "@connectrpc/connect";
import { toRpc } from "@heddle/proto/error_code";
import { HeddleError } from "@heddle/proto/error";
import { IDENTITY_NAME } from "@heddle/common/identity";
import { PEER } from "@heddle/common/rpc_server";

/** From the one that may least. */
export const OPERATOR_ROLES = ["viewer", "operator", "admin"] as const;
export type OperatorRole = (typeof OPERATOR_ROLES)[number];

/** Somebody who holds a token. */
export interface TokenHolder {
  readonly name: string;
  readonly role: OperatorRole;
}

/** Holders by the SHA-256 of their token, hex. */
export type Tokens = ReadonlyMap<string, TokenHolder>;

/** Who called with a token; undefined for a call with a certificate. */
export const TOKEN_HOLDER = createContextKey<TokenHolder | undefined>(undefined);

/**
 * What a role must be at least to call a method. What is not listed here wants an admin: a method
 * that is forgotten is closed, not open.
 */
export const ROLE_FOR: Readonly<Record<string, OperatorRole>> = {
  GetVersion: "viewer",
  ListNodes: "viewer",
  ListModels: "viewer",
  ListReplicas: "viewer",
  ListRouters: "viewer",
  ListDecisions: "viewer",
  ListAudit: "viewer",
  ListStrikes: "viewer",
  Explain: "viewer",
  PlanCatalog: "viewer",
  ForeseeDrain: "viewer",
  ListScopes: "viewer",
  GetLimits: "viewer",
  ListKeys: "viewer",
  ListPrices: "viewer",
  QueryUsage: "viewer",
  ListWeights: "viewer",
  GetCapacity: "viewer",
  WatchEvents: "viewer",
  ListTraffic: "viewer",
  // Its text has the engines' environment, and a log may say it.
  GetCatalog: "operator",
  ReadLogs: "operator",
  Cordon: "operator",
  Uncordon: "operator",
  Drain: "operator",
  LabelNode: "operator",
  PauseModel: "operator",
  ResumeModel: "operator",
  ScaleModel: "operator",
  ClearScale: "operator",
  RetryModel: "operator",
  RestartReplica: "operator",
  StopReplica: "operator",
  ForgetNode: "operator",
  RevokeKey: "operator",
  RecordMeasurement: "operator",
  PrefetchWeights: "operator",
  RemoveWeights: "operator",
  // It makes a node ask an address of the caller's.
  InspectSource: "operator",
  CreateScope: "admin",
  DeleteScope: "admin",
  SetLimits: "admin",
  CreateKey: "admin",
  UpdateKey: "admin",
  RotateKey: "admin",
  SetPrice: "admin",
  Backup: "admin",
  Restore: "admin",
  ApplyCatalog: "admin",
  Strike: "admin",
};

/** Reads lines "NAME ROLE HASH"; "#" begins a comment. Throws `invalid_input` with the line. */
export function parseTokens(text: string, file: string): Tokens {
  const tokens = new Map<string, TokenHolder>();
  for (const [index, line] of text.split("\n").entries()) {
    const words = line.replace(/#.*/, "").trim().split(/\s+/);
    if (words[0] === "") continue;
    const [name = "", word = "", hash = "", ...more] = words;
    const role = OPERATOR_ROLES.find((each) => each === word);
    const good = IDENTITY_NAME.test(name) && /^[0-9a-f]{64}$/.test(hash) && more.length === 0;
    if (role === undefined || !good) {
      throw new HeddleError(
        "invalid_input",
        `${file}:${index + 1}: want NAME ROLE HASH, with a role of ${
          OPERATOR_ROLES.join(", ")
        } and the SHA-256 of the token, as "heddle ca token" prints it`,
      );
    }
    tokens.set(hash, { name, role });
  }
  return tokens;
}

/** Lets calls through that come with an operator's certificate, or a token whose role may. */
export function demandOperator(tokens: () => Tokens): Interceptor {
  return (next) => async (request) => {
    const { identity } = request.contextValues.get(PEER);
    const method = request.method.name;
    if (identity?.role === "operator") return await next(request);
    const token = /^Bearer (\S+)$/i.exec(request.header.get("authorization") ?? "")?.[1];
    const holder = token === undefined ? undefined : tokens().get(await sha256(token));
    if (holder === undefined) {
      const what = token === undefined
        ? "no token and no operator's certificate"
        : "an unknown token";
      throw toRpc(new HeddleError("unauthenticated", `Cannot call ${method}: ${what} was shown`));
    }
    demandHolder(holder, method);
    request.contextValues.set(TOKEN_HOLDER, holder);
    return await next(request);
  };
}

/** Throws `permission_denied` when the holder's role may not call `method`. */
export function demandHolder(holder: TokenHolder, method: string): void {
  const least = ROLE_FOR[method] ?? "admin";
  if (OPERATOR_ROLES.indexOf(holder.role) >= OPERATOR_ROLES.indexOf(least)) return;
  throw new HeddleError(
    "permission_denied",
    `Cannot call ${method}: ${holder.name} is a ${holder.role}, want ${least}`,
  );
}

/** Lower-case hex. */
export async function sha256(text: string): Promise<string> {
  const bytes = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
  return new Uint8Array(bytes).toHex();
}
