/**
 * Calls control on its join port: plain calls, each over a connection of its own, so that there is
 * nothing to tend. The certificate is short-lived and in memory only; it is followed by the next one
 * in time, and the join token gets a new one when that failed.
 */
import { createClient, type Transport } from "@connectrpc/connect";
import { readJoinToken } from "@heddle/common/attach/join_token";
import { logger } from "@heddle/common/log";
import type { TlsMaterial } from "@heddle/common/mtls_files";
import { createKey, createRequest, readCertificate } from "@heddle/common/pki";
import { renewalDueAt } from "@heddle/common/renewal";
import { checkControlUrl, connectRpc } from "@heddle/common/rpc_client";
import { errorText, HeddleError } from "@heddle/proto/error";
import { AttachService, type ClaimRequest, type ClaimResponse } from "@heddle/proto/gen/attach";

const log = logger("agent", "attach");

const CALL_MS_MAX = 10_000;

export interface MembershipOptions {
  readonly urls: readonly string[];
  /** Undefined: plaintext, which only loopback speaks. */
  readonly token: string | undefined;
  /** ms since 1970 */
  readonly now: () => number;
}

export class Membership {
  readonly #options: MembershipOptions;
  readonly #ca: string | undefined;
  /** The one that answered last is asked first. */
  #first = 0;
  #held: TlsMaterial | undefined;

  /** Throws `invalid_input` for a token or URL that cannot be used. */
  constructor(options: MembershipOptions) {
    const { urls, token } = options;
    this.#options = options;
    this.#ca = token === undefined ? undefined : readJoinToken(token).ca;
    if (urls.length === 0) {
      throw new HeddleError("invalid_input", "Cannot attach: no control is named");
    }
    for (const url of urls) {
      if (token === undefined && url.startsWith("https:")) {
        const text = `Cannot attach to ${url}: set HEDDLE_JOIN_TOKEN, or HEDDLE_JOIN_TOKEN_FILE`;
        throw new HeddleError("invalid_input", text);
      }
      checkControlUrl(url, token !== undefined);
    }
  }

  /** Claims at the first control that answers. Throws what the last one said. */
  async claim(request: ClaimRequest): Promise<ClaimResponse> {
    const { urls } = this.#options;
    let last: unknown;
    for (let step = 0; step < urls.length; step++) {
      const at = (this.#first + step) % urls.length;
      try {
        const answer = await this.#claimAt(urls[at] ?? "", request);
        this.#first = at;
        return answer;
      } catch (error) {
        last = error;
      }
    }
    throw last;
  }

  async #claimAt(url: string, request: ClaimRequest): Promise<ClaimResponse> {
    if (this.#ca !== undefined) await this.#keepCertificate(url, this.#ca);
    try {
      return await calling(
        url,
        this.#held,
        (transport) =>
          createClient(AttachService, transport).claim(request, { timeoutMs: CALL_MS_MAX }),
      );
    } catch (error) {
      // Struck, or of an authority that is no more: the token may still be good.
      if (/unauthenticated/i.test(errorText(error))) this.#held = undefined;
      throw error;
    }
  }

  async #keepCertificate(url: string, ca: string): Promise<void> {
    const held = this.#held;
    const now = this.#options.now();
    if (held !== undefined && now < renewalDueAt(readCertificate(held.cert))) return;
    const valid = held !== undefined && now < readCertificate(held.cert).notAfter;
    try {
      if (valid) this.#held = await this.#join(url, held, "");
    } catch (error) {
      log.warning("Cannot follow the certificate; joining anew", { reason: errorText(error) });
    }
    if (this.#held === held) {
      try {
        this.#held = await this.#join(url, { ca }, this.#options.token ?? "");
      } catch (error) {
        // What is held counts until it ends.
        if (!valid) throw error;
      }
    }
  }

  async #join(
    url: string,
    tls: Pick<TlsMaterial, "ca"> & Partial<TlsMaterial>,
    token: string,
  ): Promise<TlsMaterial> {
    const key = await createKey();
    const requestPem = await createRequest(key);
    const { chainPem } = await calling(
      url,
      tls,
      (transport) =>
        createClient(AttachService, transport)
          .join({ token, requestPem }, { timeoutMs: CALL_MS_MAX }),
    );
    // Throws for what is none.
    readCertificate(chainPem);
    return { cert: chainPem, key, ca: tls.ca };
  }
}

async function calling<T>(
  url: string,
  tls: (Pick<TlsMaterial, "ca"> & Partial<TlsMaterial>) | undefined,
  call: (transport: Transport) => Promise<T>,
): Promise<T> {
  const connection = connectRpc({ url, tls });
  try {
    return await call(connection.transport);
  } finally {
    connection.close();
  }
}
