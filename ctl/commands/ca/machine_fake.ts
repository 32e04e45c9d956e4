/** The certificate commands as they are run on a machine, without a process around them. */
import { ok } from "node:assert/strict";
import { join } from "node:path";
import { run } from "@stricli/core";
import { app } from "../../app.ts";
import type { CtlContext } from "../../command.ts";

interface Ran {
  readonly out: string;
  readonly err: string;
  readonly failed: boolean;
}

/** A machine with its own folder for a key, and the folder of the authority. */
export class Machine {
  readonly authority: string;
  readonly certificates: string;

  constructor(folder: string, name: string) {
    this.authority = join(folder, "ca");
    this.certificates = join(folder, name);
  }

  async run(args: readonly string[], stdin = ""): Promise<Ran> {
    let out = "", err = "";
    const process = {
      stdout: { write: (text: string) => void (out += text) },
      stderr: { write: (text: string) => void (err += text) },
      env: { NO_COLOR: "1" },
      exitCode: undefined as number | string | null | undefined,
    };
    const context: CtlContext = {
      process,
      io: { terminal: false, color: false, out: process.stdout.write, err: process.stderr.write },
      signal: new AbortController().signal,
      loadContext: () => Promise.reject(new Error("no certificate command asks control")),
      loadConfig: () => Promise.reject(new Error("no certificate command asks control")),
      folders: { authority: this.authority, certificates: this.certificates },
      readStdin: () => Promise.resolve(stdin),
      bytes: { in: () => new Blob([stdin]).stream(), out: () => {} },
      ask: undefined,
      fail: () => {},
    };
    await run(app, ["ca", ...args], context);
    return { out, err, failed: Number(process.exitCode ?? 0) !== 0 };
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
