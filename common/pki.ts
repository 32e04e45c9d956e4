/**
 * Certificates: a root, and leaves whose URI says who holds them. Keys are P-256. notBefore is an
 * hour back, because clocks of a fleet differ by more than one would like.
 */
import "reflect-metadata";
import {
  AuthorityKeyIdentifierExtension,
  BasicConstraintsExtension,
  ExtendedKeyUsage,
  ExtendedKeyUsageExtension,
  KeyUsageFlags,
  KeyUsagesExtension,
  PemConverter,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  X509Certificate,
  X509CertificateGenerator,
} from "@peculiar/x509";
import { formatIdentity, type Identity } from "./identity.ts";

const KEY_ALGORITHM = { name: "ECDSA", namedCurve: "P-256" } as const;
const SIGNING_ALGORITHM = { name: "ECDSA", hash: "SHA-256" } as const;
/** How far notBefore lies back. */
const BACKDATE_MS = 3_600_000;

/** A certificate with its key, both PEM. */
export interface KeyPairPem {
  readonly certificatePem: string;
  readonly keyPem: string;
}

/** Makes a self-signed root for a cluster. */
export async function createRoot(
  options: { cluster: string; validMs: number; now: number },
): Promise<KeyPairPem> {
  const keys = await crypto.subtle.generateKey(KEY_ALGORITHM, true, ["sign", "verify"]);
  const certificate = await X509CertificateGenerator.createSelfSigned({
    serialNumber: serialNumber(),
    name: `CN=Heddle root of ${options.cluster}`,
    notBefore: new Date(options.now - BACKDATE_MS),
    notAfter: new Date(options.now + options.validMs),
    keys,
    signingAlgorithm: SIGNING_ALGORITHM,
    extensions: [
      new BasicConstraintsExtension(true, 1, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
      await SubjectKeyIdentifierExtension.create(keys.publicKey),
    ],
  });
  return { certificatePem: certificate.toString("pem"), keyPem: await exportKey(keys.privateKey) };
}

/** What a leaf says, and for how long. */
export interface LeafOptions {
  readonly identity: Identity;
  /** Names and addresses under which it serves; empty for pure clients. */
  readonly hosts: readonly string[];
  readonly validMs: number;
  readonly now: number;
}

/** Makes a key and a certificate for `identity`, signed by `root`. */
export async function createLeaf(root: KeyPairPem, options: LeafOptions): Promise<KeyPairPem> {
  const keys = await crypto.subtle.generateKey(KEY_ALGORITHM, true, ["sign", "verify"]);
  const issuer = new X509Certificate(root.certificatePem);
  const signingKey = await crypto.subtle.importKey(
    "pkcs8",
    PemConverter.decodeFirst(root.keyPem),
    KEY_ALGORITHM,
    false,
    ["sign"],
  );
  const certificate = await X509CertificateGenerator.create({
    serialNumber: serialNumber(),
    subject: `CN=${options.identity.role}-${options.identity.name}`.slice(0, 64),
    issuer: issuer.subject,
    notBefore: new Date(options.now - BACKDATE_MS),
    notAfter: new Date(options.now + options.validMs),
    signingKey,
    publicKey: keys.publicKey,
    signingAlgorithm: SIGNING_ALGORITHM,
    extensions: [
      new BasicConstraintsExtension(false, undefined, true),
      new KeyUsagesExtension(KeyUsageFlags.digitalSignature, true),
      new ExtendedKeyUsageExtension([ExtendedKeyUsage.clientAuth, ExtendedKeyUsage.serverAuth]),
      new SubjectAlternativeNameExtension([
        { type: "url", value: formatIdentity(options.identity) },
        ...options.hosts.map((host) => ({
          type: /^[\d.]+$|:/.test(host) ? "ip" as const : "dns" as const,
          value: host,
        })),
      ]),
      await SubjectKeyIdentifierExtension.create(keys.publicKey),
      await AuthorityKeyIdentifierExtension.create(issuer.publicKey),
    ],
  });
  return { certificatePem: certificate.toString("pem"), keyPem: await exportKey(keys.privateKey) };
}

async function exportKey(key: CryptoKey): Promise<string> {
  return PemConverter.encode(await crypto.subtle.exportKey("pkcs8", key), "PRIVATE KEY");
}

// 127 random bits; the first bit is kept clear so that the number stays positive.
function serialNumber(): string {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  bytes[0] = (bytes[0] ?? 0) & 0x7f | 0x40;
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}
