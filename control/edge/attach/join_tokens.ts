/** Makes join tokens. Control keeps none: they are signed, and can be struck by their id. */
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { createJoinToken } from "@heddle/common/attach/join_token";
import { IDENTITY_NAME } from "@heddle/common/identity";
import { errorText, HeddleError } from "@heddle/proto/error";
import type { JoinTokenService } from "@heddle/proto/gen/attach";
import type { Audit } from "../../core/store_record.ts";
import { type IssuingFiles, readIssuing } from "../identity/issuing.ts";

const DAY_MS = 86_400_000;
const VALID_MS_DEFAULT = DAY_MS;
/** Whoever finds one on a disk can use it for so long. */
const VALID_MS_MAX = 90 * DAY_MS;

export interface JoinTokensOptions {
  readonly cluster: string;
  readonly issuing: IssuingFiles | undefined;
  /** What boxes are to trust; undefined: this control has no TLS. */
  readonly caFile: string | undefined;
  /** False: nothing listens where a token could be shown. */
  readonly joinable: boolean;
  /** The name of who calls; throws for a caller who is no operator. */
  readonly by: (context: HandlerContext) => string;
  /** Stores that one was made. */
  readonly record: (audit: Audit) => Promise<void>;
  /** ms since 1970 */
  readonly now: () => number;
}

/** The handlers of JoinTokenService. */
export function joinTokensRpc(
  options: JoinTokensOptions,
): ServiceImpl<typeof JoinTokenService> {
  return {
    async createJoinToken({ deploymentId: deployment, validMs: asked }, context) {
      const by = options.by(context);
      const validMs = asked === 0n ? VALID_MS_DEFAULT : Number(asked);
      demand(options, deployment, validMs);
      const issuer = await readIssuing("make a join token", options.issuing);
      const now = options.now();
      const expiresAt = now + validMs;
      const id = crypto.getRandomValues(new Uint8Array(16)).toHex();
      const { cluster } = options;
      const facts = {
        cluster,
        deployment,
        id,
        issuedAt: now,
        expiresAt,
        ca: await readCa(options),
      };
      const token = await createJoinToken(issuer, facts);
      const reason = `token ${id}, until ${new Date(expiresAt).toISOString()}`;
      await options.record({
        kind: "audit",
        at: now,
        by,
        action: "join_token",
        subject: deployment,
        reason,
      });
      return { token, tokenId: id, expiresAtMs: BigInt(Math.round(expiresAt)) };
    },
  };
}

function demand(
  { joinable, caFile }: JoinTokensOptions,
  deployment: string,
  validMs: number,
): void {
  const refuse = (code: "invalid_input" | "failed_precondition", why: string) => {
    throw new HeddleError(code, `Cannot make a join token: ${why}`);
  };
  if (!IDENTITY_NAME.test(deployment)) {
    refuse(
      "invalid_input",
      `"${deployment}" is no name of a deployment: want letters, digits, ".", "_" and "-"`,
    );
  }
  if (validMs < 60_000 || validMs > VALID_MS_MAX) {
    refuse("invalid_input", `want 1m to ${VALID_MS_MAX / DAY_MS}d`);
  }
  if (!joinable) {
    refuse(
      "failed_precondition",
      "control.yaml has no section join; docs/attach.md says what it needs",
    );
  }
  if (caFile === undefined) {
    refuse("failed_precondition", "this control has no TLS, so engines attach without one");
  }
}

async function readCa({ caFile = "" }: JoinTokensOptions): Promise<string> {
  try {
    return await Deno.readTextFile(caFile);
  } catch (error) {
    throw new HeddleError("system", `Cannot read ${caFile}: ${errorText(error)}`, { cause: error });
  }
}
