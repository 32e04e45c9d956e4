/** `ctl join-tokens create`: what a rented box is given so that its engine can attach. */
import { createClient } from "@connectrpc/connect";
import { buildCommand } from "@stricli/core";
import { ATTACH_ENVIRONMENT, writeAttachEnvironment } from "@heddle/common/attach/environment";
import { JoinTokenService } from "@heddle/proto/gen/attach";
import { CALL_TIMEOUT_MS, withTransport } from "../../client.ts";
import { type CtlContext, FORM_ALIASES, SCREEN_FLAGS, type ScreenFlags } from "../../command.ts";
import { screenForm, writeScreen } from "../../live/screen.ts";
import { durationFlag } from "../tenancy/key_create.ts";

interface JoinTokenFlags extends ScreenFlags {
  readonly valid?: number;
}

export const createJoinToken = buildCommand({
  docs: {
    brief: "Make a token with which engines of one deployment can attach",
    fullDescription:
      "It is shown once. Whoever holds it can attach engines of that deployment, and " +
      'get the requests for models that name it in the catalog. "heddle ca strike ID" ends it.',
  },
  parameters: {
    positional: {
      kind: "tuple",
      parameters: [{ parse: String, placeholder: "deployment", brief: "What it is for" }],
    },
    flags: {
      ...SCREEN_FLAGS,
      valid: durationFlag("How long it can be used, 90d at most; a day when left out"),
    },
    aliases: FORM_ALIASES,
  },
  async func(this: CtlContext, flags: JoinTokenFlags, deployment: string) {
    const form = screenForm(flags);
    const made = await withTransport(
      await this.loadContext(flags),
      (transport) =>
        createClient(JoinTokenService, transport).createJoinToken(
          { deploymentId: deployment, validMs: BigInt(Math.round(flags.valid ?? 0)) },
          { timeoutMs: CALL_TIMEOUT_MS },
        ),
    );
    const { token, tokenId } = made;
    const until = new Date(Number(made.expiresAtMs)).toISOString();
    const environment = writeAttachEnvironment({ joinToken: token, deploymentId: deployment });
    writeScreen(this.io, form, {
      record: () => ({ token, token_id: tokenId, deployment, until }),
      text: () =>
        `Token ${tokenId} of deployment ${deployment}, until ${until}, shown this once:\n\n` +
        `${Object.entries(environment).map(([name, value]) => `  ${name}=${value}\n`).join("")}\n` +
        `Beside it the engine's box needs ${ATTACH_ENVIRONMENT.engineId.name} and ` +
        `${ATTACH_ENVIRONMENT.controlUrl.name}, see docs/attach.md\n`,
    });
  },
});
