/** `ctl ca token`: makes a bearer token for an operator. Control keeps its hash, nobody the token. */
import { buildCommand } from "@stricli/core";
import { IDENTITY_NAME } from "@heddle/common/identity";
import { type CtlContext, FORM_ALIASES, FORM_FLAGS, type FormFlags } from "../../command.ts";
import { screenForm, writeScreen } from "../../live/screen.ts";

/** The same roles as control's; see docs/operating/certificates.md. */
const ROLES = ["viewer", "operator", "admin"] as const;

/** 256 bits: what cannot be guessed needs no slow hash. */
const TOKEN_BYTES = 32;

interface TokenFlags extends FormFlags {
  readonly name: string;
  readonly role: (typeof ROLES)[number];
}

export const token = buildCommand({
  docs: {
    brief: "Make a bearer token, and the line for control's tokens_file",
    fullDescription: "The token is shown once. What control keeps is its hash.",
  },
  parameters: {
    flags: {
      name: { kind: "parsed", parse: parseName, placeholder: "name", brief: "Who it is for" },
      role: { kind: "enum", values: ROLES, brief: "What the holder may do" },
      ...FORM_FLAGS,
    },
    aliases: FORM_ALIASES,
  },
  async func(this: CtlContext, { name, role, ...flags }: TokenFlags) {
    const form = screenForm(flags);
    const bytes = crypto.getRandomValues(new Uint8Array(TOKEN_BYTES));
    // Begins like every secret of ours, so that no log shows it.
    const text = `sk-heddle-${bytes.toBase64({ alphabet: "base64url", omitPadding: true })}`;
    const hash = await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text));
    const line = `${name} ${role} ${new Uint8Array(hash).toHex()}`;
    writeScreen(this.io, form, {
      record: () => ({ token: text, line }),
      text: () =>
        `Token of ${name}, shown this once:\n\n  ${text}\n\n` +
        `Line for control's tokens_file, then systemctl reload heddle-control:\n\n  ${line}\n`,
    });
  },
});

function parseName(text: string): string {
  if (IDENTITY_NAME.test(text)) return text;
  throw new SyntaxError(`want letters, digits, ".", "_" and "-", as in "ann": "${text}"`);
}
