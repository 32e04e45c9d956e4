/** `ctl ca request`: makes a key where it is going to be used, and a request for a certificate. */
import { join } from "node:path";
import { buildCommand } from "@stricli/core";
import { readTextIfExists, writeFileAtomic } from "@heddle/common/atomic_file";
import { createKey, createRequest, isUsableKey } from "@heddle/common/pki";
import { errorText, HeddleError } from "@heddle/proto/error";
import type { CtlContext } from "../../command.ts";

export const request = buildCommand({
  docs: {
    brief: "Print a request for a certificate; makes the key when there is none",
    fullDescription: "HEDDLE_TLS names the folder of key.pem. The key is readable by its owner " +
      "alone and never leaves the folder. A file that holds no usable key is replaced.",
  },
  parameters: { flags: {} },
  async func(this: CtlContext) {
    const folder = certificateFolder(this);
    const file = join(folder, "key.pem");
    try {
      this.io.out(`${(await createRequest(await keyIn(folder, file))).trim()}\n`);
    } catch (error) {
      throw new HeddleError("system", `Cannot make ${file}: ${errorText(error)}`, { cause: error });
    }
  },
});

/** The folder that HEDDLE_TLS names. Throws `invalid_input` when it names none. */
export function certificateFolder({ folders }: CtlContext): string {
  if (folders.certificates !== undefined) return folders.certificates;
  throw new HeddleError(
    "invalid_input",
    "Nothing says where the key goes: name its folder in HEDDLE_TLS",
  );
}

async function keyIn(folder: string, file: string): Promise<string> {
  const there = await readTextIfExists(file);
  if (there !== undefined && await isUsableKey(there)) {
    // Where somebody copied it by hand it may lie open.
    await Deno.chmod(file, 0o600);
    return there;
  }
  const key = await createKey();
  await Deno.mkdir(folder, { recursive: true, mode: 0o700 });
  await writeFileAtomic(file, key);
  return key;
}
