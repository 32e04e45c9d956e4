/** `ctl ca init`: makes the certificate authority of a cluster. */
import { buildCommand } from "@stricli/core";
import { IDENTITY_NAME } from "@heddle/common/identity";
import { HeddleError } from "@heddle/proto/error";
import type { CtlContext } from "../../command.ts";
import { createAuthority, findAuthority, writeAuthority, writeTrust } from "./authority.ts";

interface InitFlags {
  readonly cluster: string;
}

export const init = buildCommand({
  docs: {
    brief: "Make the authority of a cluster; does nothing when it is there",
    fullDescription: "HEDDLE_CA names its folder; by default ~/.config/heddle/ca.",
  },
  parameters: {
    flags: {
      cluster: {
        kind: "parsed",
        parse: String,
        placeholder: "name",
        brief: "Name of the cluster, as in control.yaml",
      },
    },
  },
  async func(this: CtlContext, { cluster }: InitFlags) {
    if (!IDENTITY_NAME.test(cluster)) {
      throw new HeddleError(
        "invalid_input",
        `Cannot name a cluster "${cluster}": want letters, digits, ".", "_" and "-", as in "prod-1"`,
      );
    }
    const folder = this.folders.authority;
    const there = await findAuthority(folder);
    if (there !== undefined && there.cluster !== cluster) {
      throw new HeddleError(
        "failed_precondition",
        `Cannot make an authority for "${cluster}" in ${folder}: that of "${there.cluster}" is ` +
          "there; name another folder in HEDDLE_CA",
      );
    }
    if (there !== undefined) {
      this.io.out(`The authority of ${cluster} is in ${folder} already\n`);
      return;
    }
    const made = await createAuthority(cluster, Date.now());
    await writeAuthority(folder, made);
    await writeTrust(folder, [made.root.certificatePem]);
    this.io.out(
      `Made the authority of ${cluster} in ${folder}\n` +
        "Put root-key.pem away, off this machine: it is needed once in two years\n",
    );
  },
});
