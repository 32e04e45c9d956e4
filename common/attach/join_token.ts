/**
 * Join tokens: what a rented box is given so that its agent can get a certificate. A token is signed
 * by the fleet's authority and kept nowhere; it says which deployment it is for, and until when. It
 * also carries the roots that the box is to trust, so that it is the one secret that a box needs.
 */
import "reflect-metadata";
import { PemConverter, X509Certificate } from "@peculiar/x509";
import { z } from "zod";
import { errorText, HeddleError } from "@heddle/proto/error";
import { IDENTITY_NAME } from "../identity.ts";
import type { KeyPairPem } from "../pki.ts";

/** Begins like every secret of ours, so that no log shows it. */
const PREFIX = "sk-heddle-join-";
const CURVE = { name: "ECDSA", namedCurve: "P-256" } as const;
const SIGNING = { name: "ECDSA", hash: "SHA-256" } as const;
const SIGNATURE_BYTES = 64;
/** Two roots during a rotation, and room for more. */
const TOKEN_CHARS_MAX = 32_768;
const BASE64 = { alphabet: "base64url" } as const;

const factsSchema = z.object({
  v: z.literal(1),
  /** Cluster. */
  c: z.string().regex(IDENTITY_NAME),
  /** Deployment. */
  d: z.string().regex(IDENTITY_NAME),
  /** Its own name, by which it can be struck. */
  id: z.string().regex(/^[0-9a-f]{32}$/),
  /** When it was made, in ms since 1970. */
  iat: z.number(),
  /** When it ends, in ms since 1970. */
  exp: z.number(),
  /** Roots to trust, DER in base64. */
  ca: z.array(z.string()),
});

export interface JoinToken {
  readonly cluster: string;
  readonly deployment: string;
  readonly id: string;
  /** ms since 1970 */
  readonly issuedAt: number;
  /** ms since 1970 */
  readonly expiresAt: number;
  /** PEM */
  readonly ca: string;
}

/** Makes a token. `ca` is what the box is to trust, PEM. */
export async function createJoinToken(issuer: KeyPairPem, token: JoinToken): Promise<string> {
  const facts: z.output<typeof factsSchema> = {
    v: 1,
    c: token.cluster,
    d: token.deployment,
    id: token.id,
    iat: token.issuedAt,
    exp: token.expiresAt,
    ca: PemConverter.decode(token.ca).map((raw) => new Uint8Array(raw).toBase64()),
  };
  const payload = new TextEncoder().encode(JSON.stringify(facts));
  const key = await crypto.subtle.importKey(
    "pkcs8",
    PemConverter.decodeFirst(issuer.keyPem),
    CURVE,
    false,
    ["sign"],
  );
  const signature = new Uint8Array(await crypto.subtle.sign(SIGNING, key, payload));
  const whole = new Uint8Array([...payload, ...signature]);
  return `${PREFIX}${whole.toBase64({ ...BASE64, omitPadding: true })}`;
}

/** What a token says, whoever made it. Throws `invalid_input`. */
export function readJoinToken(text: string): JoinToken {
  return parse(text).token;
}

/** What a token of this authority says. Throws `unauthenticated` for another's, and one that ended. */
export async function verifyJoinToken(
  text: string,
  { issuerPem, now }: { readonly issuerPem: string; readonly now: number },
): Promise<JoinToken> {
  const { token, payload, signature } = parse(text);
  const key = await new X509Certificate(issuerPem).publicKey.export(CURVE, ["verify"]);
  if (!await crypto.subtle.verify(SIGNING, key, signature, payload)) {
    throw new HeddleError(
      "unauthenticated",
      "Cannot join: the token is not of this cluster's authority, or was changed. Make another " +
        'with "heddle join-tokens create"',
    );
  }
  if (now >= token.expiresAt) {
    throw new HeddleError(
      "unauthenticated",
      `Cannot join: the token ended at ${
        new Date(token.expiresAt).toISOString()
      }. Make another with "heddle join-tokens create"`,
    );
  }
  return token;
}

function parse(text: string) {
  try {
    if (!text.startsWith(PREFIX)) throw new Error(`want a text that begins with ${PREFIX}`);
    if (text.length > TOKEN_CHARS_MAX) throw new Error("it is far too long");
    const whole = Uint8Array.fromBase64(text.slice(PREFIX.length), BASE64);
    if (whole.length <= SIGNATURE_BYTES) throw new Error("it is cut off");
    const payload = whole.slice(0, -SIGNATURE_BYTES);
    const facts = factsSchema.parse(JSON.parse(new TextDecoder().decode(payload)));
    return {
      token: {
        cluster: facts.c,
        deployment: facts.d,
        id: facts.id,
        issuedAt: facts.iat,
        expiresAt: facts.exp,
        ca: facts.ca.map((each) =>
          PemConverter.encode(Uint8Array.fromBase64(each).buffer, "CERTIFICATE")
        ).join("\n"),
      },
      payload,
      signature: whole.slice(-SIGNATURE_BYTES),
    };
  } catch (error) {
    throw new HeddleError("invalid_input", `Cannot read the join token: ${reason(error)}`, {
      cause: error,
    });
  }
}

// What zod and the JSON parser say of a secret may quote it.
function reason(error: unknown): string {
  const text = errorText(error);
  return /^(?:want a text|it is )/.test(text) ? text : "it is damaged, or not a join token";
}
