/** `ctl ca issue`: a key and a certificate for somebody on this machine, such as an operator. */
import { join } from "node:path";
import { buildCommand } from "@stricli/core";
import { writeFileAtomic } from "@heddle/common/atomic_file";
import { createLeaf, readCertificate } from "@heddle/common/pki";
import { errorText, HeddleError } from "@heddle/proto/error";
import type { CtlContext } from "../../command.ts";
import { openAuthority } from "./authority.ts";
import { finishLeaf, LEAF_FLAGS, type LeafFlags, leafOptions } from "./leaf_flags.ts";
import { certificateFolder } from "./request.ts";

export const issue = buildCommand({
  docs: {
    brief: "Make a key and a certificate here: cert.pem, key.pem and ca.pem",
    fullDescription:
      "HEDDLE_TLS names the folder they go to. For another machine use `ca request` " +
      "there and `ca sign` here, so that its key never travels.",
  },
  parameters: { flags: LEAF_FLAGS },
  async func(this: CtlContext, flags: LeafFlags) {
    const folder = certificateFolder(this);
    const authority = await openAuthority(this.folders.authority);
    const leaf = await createLeaf(authority.issuing, leafOptions(authority, flags, Date.now()));
    const chain = await finishLeaf(this.folders.authority, authority, leaf.certificatePem);
    try {
      await Deno.mkdir(folder, { recursive: true, mode: 0o700 });
      await writeFileAtomic(join(folder, "key.pem"), leaf.keyPem);
      await writeFileAtomic(join(folder, "cert.pem"), chain, { mode: 0o644 });
      await writeFileAtomic(join(folder, "ca.pem"), authority.trustPem, { mode: 0o644 });
    } catch (error) {
      throw new HeddleError("system", `Cannot write to ${folder}: ${errorText(error)}`, {
        cause: error,
      });
    }
    const { notAfter } = readCertificate(leaf.certificatePem);
    this.io.out(
      `${flags.role} ${flags.name}: certificate and key in ${folder}, ` +
        `good until ${new Date(notAfter).toISOString().slice(0, 10)}\n`,
    );
  },
});
