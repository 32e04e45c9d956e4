/** The certificate that clients are shown: read from its files, and tried before it is put to use. */
import { createPrivateKey, X509Certificate } from "node:crypto";
import { errorText, HeddleError } from "@heddle/proto/error";

/** PEM texts: the chain that clients are shown, and its private key. */
export interface ServerTls {
  readonly cert: string;
  readonly key: string;
}

/** Throws `invalid_input` when a file cannot be read, or no handshake could use the pair. */
export async function readServerTls(
  files: { readonly certificate_file: string; readonly key_file: string },
): Promise<ServerTls> {
  const { certificate_file, key_file } = files;
  try {
    const cert = await Deno.readTextFile(certificate_file);
    const key = await Deno.readTextFile(key_file);
    if (!new X509Certificate(cert).checkPrivateKey(createPrivateKey(key))) {
      throw new Error("the key is not the certificate's");
    }
    return { cert, key };
  } catch (error) {
    throw new HeddleError(
      "invalid_input",
      `Cannot use ${certificate_file} with ${key_file}: ${errorText(error)}`,
      { cause: error },
    );
  }
}
