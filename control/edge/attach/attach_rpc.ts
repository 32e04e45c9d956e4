/** Engines that something else started: how their agents get a certificate, and hold a lease. */
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { verifyJoinToken } from "@heddle/common/attach/join_token";
import { isLoopback } from "@heddle/common/address";
import { logger } from "@heddle/common/log";
import { readCertificate, signRequest } from "@heddle/common/pki";
import { PEER } from "@heddle/common/rpc_server";
import { encodeAttachedState } from "@heddle/proto/attached_state";
import { HeddleError } from "@heddle/proto/error";
import type { AttachService, ClaimRequest } from "@heddle/proto/gen/attach";
import { attachedId } from "../../core/attach/attached.ts";
import { type AttachedClaimed, claimRefusal } from "../../core/attach/observe.ts";
import { attachedAnswer } from "../../core/views/attached.ts";
import type { World } from "../../core/world.ts";
import type { Realm } from "../caller.ts";
import { type IssuingFiles, readIssuing } from "../identity/issuing.ts";
import { decodeClaim } from "./decode_claim.ts";

const log = logger("control", "attach");

/** Its agent asks for the next one in time; a box that was given back cannot for long. */
const CERTIFICATE_MS = 3_600_000;

/** The deployment of engines that say none, where no certificate can say it. */
const LOCAL_DEPLOYMENT = "local";

export interface AttachRpcOptions {
  readonly realm: Realm;
  readonly issuing: IssuingFiles | undefined;
  readonly loop: {
    dispatch(event: AttachedClaimed): Promise<void>;
    world(): World;
    now(): number;
  };
  readonly prover: { consider(id: string): void };
  /** ms since 1970 */
  readonly wallClock: () => number;
}

/** The handlers of AttachService. */
export function attachRpc(options: AttachRpcOptions): ServiceImpl<typeof AttachService> {
  const { realm, loop, prover } = options;
  return {
    async join({ token, requestPem }, context) {
      const deployment = token === ""
        ? certifiedDeployment(context, realm)
        : await tokenDeployment(options, token);
      return { chainPem: await certify(options, deployment, requestPem) };
    },
    async claim(request, context) {
      const event = claimedBy(request, context, realm);
      const now = loop.now();
      const refusal = claimRefusal(loop.world(), event, now);
      if (refusal !== undefined) {
        const text = `Cannot attach engine "${request.engineId}": ${refusal.message}`;
        throw new HeddleError("failed_precondition", text);
      }
      const id = attachedId(event.deployment, event.claim.engineId);
      if (!loop.world().attached.has(id)) {
        log.info("Engine attached", { engine: id, provider: event.claim.provider });
      }
      await loop.dispatch(event);
      prover.consider(id);
      const { state, published, waitingFor } = attachedAnswer(loop.world(), id, loop.now());
      return {
        leaseMs: BigInt(loop.world().timings.attachLeaseMs),
        state: encodeAttachedState(state),
        published,
        waitingFor,
      };
    },
  };
}

function claimedBy(
  request: ClaimRequest,
  context: HandlerContext,
  realm: Realm,
): AttachedClaimed {
  const deployment = realm.secured
    ? certifiedDeployment(context, realm)
    : request.deploymentId || LOCAL_DEPLOYMENT;
  if (request.deploymentId !== "" && request.deploymentId !== deployment) {
    throw new HeddleError(
      "permission_denied",
      `Cannot attach engine "${request.engineId}" to deployment "${request.deploymentId}": its join ` +
        `token is for "${deployment}"`,
    );
  }
  const from = context.values.get(PEER).address.replace(/^::ffff:/, "");
  const claim = decodeClaim(request, !realm.secured || isLoopback(from));
  return { kind: "attached_claimed", deployment, claim, from };
}

function certifiedDeployment(context: HandlerContext, { cluster }: Realm): string {
  const { identity } = context.values.get(PEER);
  if (identity?.role === "attached" && identity.cluster === cluster) return identity.name;
  throw new HeddleError(
    "unauthenticated",
    `Cannot call ${context.method.name}: want a certificate of role attached, of cluster ` +
      `"${cluster}", or a join token to get one`,
  );
}

async function tokenDeployment(
  { realm, issuing, loop, wallClock }: AttachRpcOptions,
  text: string,
): Promise<string> {
  const { certificatePem } = await readIssuing("join", issuing);
  const token = await verifyJoinToken(text, { issuerPem: certificatePem, now: wallClock() });
  if (token.cluster !== realm.cluster) {
    throw new HeddleError(
      "permission_denied",
      `Cannot join: the token is of cluster "${token.cluster}", this is "${realm.cluster}"`,
    );
  }
  const { struck } = loop.world().decisions;
  const all = struck.get(`attached/${token.deployment}`);
  const strike = struck.get(`serial/${token.id}`) ??
    (all !== undefined && token.issuedAt <= all.issuedBefore ? all : undefined);
  if (strike === undefined) return token.deployment;
  throw new HeddleError("unauthenticated", `Cannot join: ${strike.by} struck the token`);
}

async function certify(
  { realm, issuing, wallClock }: AttachRpcOptions,
  deployment: string,
  requestPem: string,
): Promise<string> {
  const authority = await readIssuing("join", issuing);
  const leaf = await signRequest(authority, requestPem, {
    identity: { cluster: realm.cluster, role: "attached", name: deployment },
    hosts: [],
    validMs: CERTIFICATE_MS,
    now: wallClock(),
  });
  const { serial, notAfter } = readCertificate(leaf);
  log.info("Joined", { deployment, serial, until: new Date(notAfter).toISOString() });
  return `${leaf.trim()}\n${authority.certificatePem.trim()}\n`;
}
