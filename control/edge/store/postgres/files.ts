/** Where PostgreSQL is, with what is secret or long in files of its own. */
import type { Address } from "@heddle/common/address";
import { errorText, HeddleError } from "@heddle/proto/error";
import type { PostgresSettings } from "./session.ts";

export interface PostgresFiles {
  readonly address: Address;
  readonly database: string;
  readonly user: string;
  readonly passwordFile: string | undefined;
  readonly caFile: string | undefined;
}

/** Reads the files. Throws `invalid_input` naming the one that cannot be read. */
export async function readPostgresFiles(files: PostgresFiles): Promise<PostgresSettings> {
  const { address, database, user, passwordFile, caFile } = files;
  const password = passwordFile === undefined ? undefined : await readText(passwordFile);
  return {
    address,
    database,
    user,
    // Editors end a file with a line break; a password has none.
    password: password?.replace(/\r?\n$/, ""),
    ca: caFile === undefined ? undefined : await readText(caFile),
  };
}

async function readText(file: string): Promise<string> {
  try {
    return await Deno.readTextFile(file);
  } catch (error) {
    throw new HeddleError("invalid_input", `Cannot read ${file}: ${errorText(error)}`, {
      cause: error,
    });
  }
}
