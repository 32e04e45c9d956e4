/** The certificate commands as they are run on a machine, without a process around them. */
import { ok } from "node:assert/strict";
import { join } from "node:path";
import { type Ran, runApp } from "../../testing/app_fake.ts";

/** A machine with its own folder for a key, and the folder of the authority. */
export class Machine {
  readonly authority: string;
  readonly certificates: string;

  constructor(folder: string, name: string) {
    this.authority = join(folder, "ca");
    this.certificates = join(folder, name);
  }

  run(args: readonly string[], stdin = ""): Promise<Ran> {
    const folders = { authority: this.authority, certificates: this.certificates };
    return runApp(["ca", ...args], { folders, stdin });
  }

  async succeed(args: readonly string[], stdin = ""): Promise<string> {
    const { out, err, failed } = await this.run(args, stdin);
    ok(!failed, err);
    return out;
  }
}

export async function withFolder(use: (folder: string) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir({ prefix: "heddle-ca-" });
  try {
    await use(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}
