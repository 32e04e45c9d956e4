/**
 * Certificates: a root, an issuing authority below it, and leaves whose URI says who holds them. The
 * signer decides who that is: of a request only its key counts. Keys are P-256. notBefore is an
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
  Pkcs10CertificateRequest,
  Pkcs10CertificateRequestGenerator,
  type PublicKey,
  SubjectAlternativeNameExtension,
  SubjectKeyIdentifierExtension,
  X509Certificate,
  X509CertificateGenerator,
} from "@peculiar/x509";
import { errorText, HeddleError } from "@heddle/proto/error";
import { FLEET_AUTHORITY, formatIdentity, type Identity, parseIdentity } from "./identity.ts";

const KEY_ALGORITHM = { name: "ECDSA", namedCurve: "P-256" } as const;
const SIGNING_ALGORITHM = { name: "ECDSA", hash: "SHA-256" } as const;
/** How far notBefore lies back. */
export const BACKDATE_MS = 3_600_000;

/** A certificate with its key, both PEM. */
export interface KeyPairPem {
  readonly certificatePem: string;
  readonly keyPem: string;
}

interface AuthorityOptions {
  readonly cluster: string;
  readonly validMs: number;
  readonly now: number;
}

/** Makes a self-signed root for a cluster. */
export async function createRoot(options: AuthorityOptions): Promise<KeyPairPem> {
  const keys = await generateKeys();
  const certificate = await X509CertificateGenerator.createSelfSigned({
    serialNumber: serialNumber(),
    name: `CN=Heddle root of ${options.cluster}`,
    notBefore: new Date(options.now - BACKDATE_MS),
    notAfter: new Date(options.now + options.validMs),
    keys,
    signingAlgorithm: SIGNING_ALGORITHM,
    extensions: await authorityExtensions(options.cluster, keys.publicKey, 1),
  });
  return { certificatePem: certificate.toString("pem"), keyPem: await exportKey(keys.privateKey) };
}

/** Makes an authority below `root` that signs leaves and no further authorities. */
export async function createIssuing(
  root: KeyPairPem,
  options: AuthorityOptions & {
    /** True for the one that control holds: what it signs counts for agents and routers alone. */
    readonly fleet?: boolean;
  },
): Promise<KeyPairPem> {
  const keys = await generateKeys();
  const issuer = new X509Certificate(root.certificatePem);
  const certificate = await X509CertificateGenerator.create({
    serialNumber: serialNumber(),
    subject: options.fleet === true
      ? `CN=${FLEET_AUTHORITY}${options.cluster}`
      : `CN=Heddle issuing authority of ${options.cluster}`,
    issuer: issuer.subject,
    notBefore: new Date(options.now - BACKDATE_MS),
    notAfter: earlier(options.now + options.validMs, issuer.notAfter),
    signingKey: await importKey(root.keyPem),
    publicKey: keys.publicKey,
    signingAlgorithm: SIGNING_ALGORITHM,
    extensions: [
      ...await authorityExtensions(options.cluster, keys.publicKey, 0),
      await AuthorityKeyIdentifierExtension.create(issuer.publicKey),
    ],
  });
  return { certificatePem: certificate.toString("pem"), keyPem: await exportKey(keys.privateKey) };
}

async function authorityExtensions(cluster: string, key: CryptoKey, pathLength: number) {
  return [
    new BasicConstraintsExtension(true, pathLength, true),
    new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
    new SubjectAlternativeNameExtension([{ type: "url", value: authorityUri(cluster) }]),
    await SubjectKeyIdentifierExtension.create(key),
  ];
}

// No role and no name: an authority's certificate is nobody's identity.
function authorityUri(cluster: string): string {
  return `spiffe://heddle/${cluster}`;
}

/** What a leaf says, and for how long. */
export interface LeafOptions {
  readonly identity: Identity;
  /** Names and addresses under which it serves; empty for pure clients. */
  readonly hosts: readonly string[];
  readonly validMs: number;
  readonly now: number;
}

/** Makes a key and a certificate for `identity`, signed by `issuer`. */
export async function createLeaf(issuer: KeyPairPem, options: LeafOptions): Promise<KeyPairPem> {
  const keys = await generateKeys();
  return {
    certificatePem: await signLeaf(issuer, keys.publicKey, options),
    keyPem: await exportKey(keys.privateKey),
  };
}

/**
 * Signs the key of a request for the identity in `options`; what the request says of itself is
 * ignored. Throws `invalid_input` for what is no request, not signed by its own key, or not P-256.
 */
export async function signRequest(
  issuer: KeyPairPem,
  requestPem: string,
  options: LeafOptions,
): Promise<string> {
  const request = await readRequest(requestPem);
  return await signLeaf(issuer, request.publicKey, options);
}

/** Makes a request for a certificate for this key. It names nobody: that is the signer's to say. */
export async function createRequest(keyPem: string): Promise<string> {
  const request = await Pkcs10CertificateRequestGenerator.create({
    name: "CN=heddle",
    keys: { privateKey: await importKey(keyPem), publicKey: await publicOf(keyPem) },
    signingAlgorithm: SIGNING_ALGORITHM,
  });
  return request.toString("pem");
}

/** Makes a private key, PEM. */
export async function createKey(): Promise<string> {
  return await exportKey((await generateKeys()).privateKey);
}

/** True when `keyPem` is a key as this file makes them. */
export async function isUsableKey(keyPem: string): Promise<boolean> {
  try {
    await publicOf(keyPem);
    return true;
  } catch {
    return false;
  }
}

/** What can be read from a certificate. Times are ms since 1970. */
export interface CertificateFacts {
  /** Lower-case hex. */
  readonly serial: string;
  /** The cluster of an authority; undefined in a leaf. */
  readonly cluster: string | undefined;
  /** Undefined in an authority, and in what is not of our form. */
  readonly identity: Identity | undefined;
  readonly hosts: readonly string[];
  readonly notBefore: number;
  readonly notAfter: number;
}

/** Reads the first certificate of a PEM text. Throws `invalid_input`. */
export function readCertificate(pem: string): CertificateFacts {
  const certificate = parseCertificate(pem);
  const names = certificate.getExtension(SubjectAlternativeNameExtension)?.names.items ?? [];
  const uris = names.filter(({ type }) => type === "url").map(({ value }) => value);
  const identities = uris.map(parseIdentity).filter((identity) => identity !== undefined);
  return {
    serial: certificate.serialNumber.toLowerCase(),
    cluster: uris.map((uri) => /^spiffe:\/\/heddle\/([^/]+)$/.exec(uri)?.[1])
      .find((cluster) => cluster !== undefined),
    identity: identities.length === 1 ? identities[0] : undefined,
    hosts: names.filter(({ type }) => type === "dns" || type === "ip").map(({ value }) => value),
    notBefore: certificate.notBefore.getTime(),
    notAfter: certificate.notAfter.getTime(),
  };
}

/** True when the first certificate of `pem` was signed by `issuerPem` for the key of `requestPem`. */
export async function isIssuedFor(
  pem: string,
  { issuerPem, requestPem }: { issuerPem: string; requestPem: string },
): Promise<boolean> {
  const certificate = parseCertificate(pem);
  const request = await readRequest(requestPem);
  const sameKey = PemConverter.encode(certificate.publicKey.rawData, "PUBLIC KEY") ===
    PemConverter.encode(request.publicKey.rawData, "PUBLIC KEY");
  return sameKey && await certificate.verify({
    publicKey: parseCertificate(issuerPem).publicKey,
    signatureOnly: true,
  });
}

async function signLeaf(
  issuer: KeyPairPem,
  publicKey: CryptoKey | PublicKey,
  options: LeafOptions,
): Promise<string> {
  const authority = new X509Certificate(issuer.certificatePem);
  const certificate = await X509CertificateGenerator.create({
    serialNumber: serialNumber(),
    subject: `CN=${options.identity.role}-${options.identity.name}`.slice(0, 64),
    issuer: authority.subject,
    notBefore: new Date(options.now - BACKDATE_MS),
    // A leaf that outlives its authority would be refused on the day nobody expects it.
    notAfter: earlier(options.now + options.validMs, authority.notAfter),
    signingKey: await importKey(issuer.keyPem),
    publicKey,
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
      await SubjectKeyIdentifierExtension.create(publicKey),
      await AuthorityKeyIdentifierExtension.create(authority.publicKey),
    ],
  });
  return certificate.toString("pem");
}

async function readRequest(pem: string): Promise<Pkcs10CertificateRequest> {
  const request = parsePem(
    pem,
    "a request for a certificate",
    (raw) => new Pkcs10CertificateRequest(raw),
  );
  const { name, namedCurve } = { namedCurve: "", ...request.publicKey.algorithm };
  if (name !== KEY_ALGORITHM.name || namedCurve !== KEY_ALGORITHM.namedCurve) {
    throw new HeddleError("invalid_input", `Cannot sign the request: its key is not P-256`);
  }
  if (!await request.verify()) {
    throw new HeddleError("invalid_input", "Cannot sign the request: its key did not sign it");
  }
  return request;
}

function parseCertificate(pem: string): X509Certificate {
  return parsePem(pem, "a certificate", (raw) => new X509Certificate(raw));
}

function parsePem<T>(pem: string, what: string, parse: (raw: ArrayBuffer) => T): T {
  try {
    return parse(PemConverter.decodeFirst(pem));
  } catch (error) {
    throw new HeddleError("invalid_input", `Cannot read ${what}: ${errorText(error)}`, {
      cause: error,
    });
  }
}

function earlier(wanted: number, limit: Date): Date {
  return new Date(Math.min(wanted, limit.getTime()));
}

function generateKeys(): Promise<CryptoKeyPair> {
  return crypto.subtle.generateKey(KEY_ALGORITHM, true, ["sign", "verify"]);
}

function importKey(pem: string): Promise<CryptoKey> {
  const raw = PemConverter.decodeFirst(pem);
  return crypto.subtle.importKey("pkcs8", raw, KEY_ALGORITHM, true, ["sign"]);
}

// WebCrypto derives no public key from a private one; the JWK of the private one holds both.
async function publicOf(keyPem: string): Promise<CryptoKey> {
  const { d: _private, key_ops: _operations, ...jwk } = await crypto.subtle.exportKey(
    "jwk",
    await importKey(keyPem),
  );
  return await crypto.subtle.importKey("jwk", jwk, KEY_ALGORITHM, true, ["verify"]);
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
