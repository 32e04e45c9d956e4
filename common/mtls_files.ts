/** Where a program's certificate, key and authorities lie, and how they are read. */
import { z } from "zod";
import { errorText, HeddleError } from "@heddle/proto/error";

/** The `tls` section of every program's configuration. */
export const tlsFilesSchema = z.strictObject({
  certificate_file: z.string().describe("PEM file with this program's certificate chain"),
  key_file: z.string().describe("PEM file with its private key, readable by it alone"),
  ca_file: z.string().describe("PEM file with the authorities that peers are checked against"),
});
export type TlsFiles = z.output<typeof tlsFilesSchema>;

/** PEM texts, as read from the files. */
export interface TlsMaterial {
  readonly cert: string;
  readonly key: string;
  readonly ca: string;
}

/** Reads the three files. Throws `invalid_input` naming the one that cannot be read. */
export async function readTlsFiles(files: TlsFiles): Promise<TlsMaterial> {
  const [cert, key, ca] = await Promise.all([
    readPem(files.certificate_file),
    readPem(files.key_file),
    readPem(files.ca_file),
  ]);
  return { cert, key, ca };
}

async function readPem(file: string): Promise<string> {
  let text: string;
  try {
    text = await Deno.readTextFile(file);
  } catch (error) {
    throw new HeddleError("invalid_input", `Cannot read ${file}: ${errorText(error)}`, {
      cause: error,
    });
  }
  if (!text.includes("-----BEGIN ")) {
    throw new HeddleError("invalid_input", `Cannot use ${file}: it holds no PEM block`);
  }
  return text;
}
