/** `ctl backup` and `restore`: control's whole store, through standard output and input. */
import { buildCommand } from "@stricli/core";
import { HeddleError } from "@heddle/proto/error";
import { confirm } from "../io.ts";
import {
  COMMON_FLAGS,
  type CommonFlags,
  type CtlContext,
  type SureFlags,
  YES_FLAG,
} from "../command.ts";
import { plural } from "../status/plural.ts";
import { callTenancy } from "./tenancy/client.ts";

/** Bytes in one message. */
const CHUNK_BYTES = 64 * 1_024;

export const backup = buildCommand({
  docs: {
    brief: "Write a backup of control's store to standard output",
    fullDescription:
      "While control runs. It holds the hashes of keys, so keep it as you keep them. " +
      "A store in PostgreSQL is backed up with pg_dump.",
  },
  parameters: { flags: COMMON_FLAGS },
  async func(this: CtlContext, flags: CommonFlags) {
    if (this.io.terminal) {
      throw new HeddleError(
        "invalid_input",
        "Cannot write a backup to a terminal: use heddle backup > FILE",
      );
    }
    let bytes = 0;
    await callTenancy(this, flags, async (client) => {
      for await (const { chunk } of client.backup({}, { signal: this.signal })) {
        bytes += chunk.length;
        this.bytes.out(chunk);
      }
    });
    this.io.err(`Wrote ${bytes} bytes\n`);
  },
});

export const restore = buildCommand({
  docs: {
    brief: "Put a backup from standard input in the place of control's store",
    fullDescription:
      "Everything that was decided since is gone: keys, limits, usage, cordons, the " +
      "applied catalog. Control leads anew with what is in it; engines and requests go on.",
  },
  parameters: { flags: { ...COMMON_FLAGS, ...YES_FLAG } },
  async func(this: CtlContext, flags: SureFlags) {
    await confirm(this, flags, "Put the backup in the place of everything that is stored now?");
    const { records } = await callTenancy(
      this,
      flags,
      (client) => client.restore(chunks(this.bytes.in()), { signal: this.signal }),
    );
    this.io.out(`Restored; its audit trail has ${plural(Number(records), "record")}\n`);
  },
});

async function* chunks(input: AsyncIterable<Uint8Array<ArrayBuffer>>) {
  for await (const piece of input) {
    for (let at = 0; at < piece.length; at += CHUNK_BYTES) {
      yield { chunk: piece.subarray(at, at + CHUNK_BYTES) };
    }
  }
}
