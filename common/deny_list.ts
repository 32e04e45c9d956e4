/**
 * Who was struck. Deno ignores revocation lists, so control keeps a list of its own, and agents and
 * routers keep a copy of it: who scrapes them shows a certificate as well. The copy is on disk, for
 * they start and serve without control too.
 */
import { join } from "node:path";
import { Code, ConnectError, createClient, type Transport } from "@connectrpc/connect";
import { z } from "zod";
import { errorText } from "@heddle/proto/error";
import { DenyListService, type WatchDenyListResponse } from "@heddle/proto/gen/identity";
import { readTextIfExists, writeFileAtomic } from "./atomic_file.ts";
import type { ShownCertificate } from "./identity.ts";
import { logger } from "./log.ts";
import { BACKDATE_MS } from "./pki.ts";
import { delay } from "./task.ts";

const log = logger("certificates");

/** A stream that broke while its connection stands is asked for again after so long. */
const RETRY_MS = 10_000;

const FILE_VERSION = 1;

/** One line of the list; times in ms since 1970, by the signer's clock. */
export interface Struck {
  readonly by: string;
  readonly reason: string;
  /** What the holder was given later is good. */
  readonly issuedBefore: number;
}

/** By "serial/4f…" or "agent/gpu-7". */
type DenyList = ReadonlyMap<string, Struck>;

const fileSchema = z.object({
  version: z.literal(FILE_VERSION),
  struck: z.record(
    z.string(),
    z.object({ by: z.string(), reason: z.string(), issuedBefore: z.number() }),
  ),
});

/** Why a certificate counts no more; undefined when it was not struck. */
export function struckWhy(
  struck: DenyList,
  { identity, serial, notBefore }: ShownCertificate,
): string | undefined {
  const one = struck.get(`serial/${serial}`);
  if (one !== undefined) return said(one);
  if (identity === undefined) return undefined;
  const all = struck.get(`${identity.role}/${identity.name}`);
  // What the signer wrote into it lies so far back; see pki.ts.
  return all !== undefined && notBefore + BACKDATE_MS <= all.issuedBefore ? said(all) : undefined;
}

function said({ by, reason }: Struck): string {
  return `${by} struck it${reason === "" ? "" : `: ${reason}`}`;
}

/** A program's copy of control's list. */
export class DenyListCopy {
  readonly #file: string;
  #struck: DenyList = new Map();
  #onChange = () => {};

  constructor(stateDirectory: string) {
    this.#file = join(stateDirectory, "deny_list.json");
  }

  /** What control said last, before this program started. Never rejects. */
  async load(): Promise<void> {
    try {
      const text = await readTextIfExists(this.#file);
      if (text === undefined) return;
      this.#struck = new Map(Object.entries(fileSchema.parse(JSON.parse(text)).struck));
    } catch (error) {
      log.warning("Cannot read who was struck; until control says so, nobody was", {
        file: this.#file,
        reason: errorText(error),
      });
    }
  }

  /** Has `heed` called when the list changed; there is one such. */
  onChange(heed: () => void): void {
    this.#onChange = heed;
  }

  /** Why a certificate counts no more; undefined when it was not struck. */
  readonly refuses = (shown: ShownCertificate): string | undefined =>
    struckWhy(this.#struck, shown);

  /** Follows control's list over this connection until `signal` aborts. Never rejects. */
  async follow(transport: Transport, signal: AbortSignal): Promise<void> {
    const client = createClient(DenyListService, transport);
    while (!signal.aborted) {
      try {
        for await (const answer of client.watchDenyList({}, { signal })) await this.#take(answer);
      } catch (error) {
        if (signal.aborted) return;
        if (ConnectError.from(error).code === Code.Unimplemented) {
          log.info("Control is older than this program and does not say who was struck");
          return;
        }
        log.warning("Cannot follow who was struck", { reason: errorText(error) });
      }
      await delay(RETRY_MS, signal);
    }
  }

  async #take({ denied }: WatchDenyListResponse): Promise<void> {
    this.#struck = new Map(
      denied.map(({ struck, by, reason, issuedBeforeMs }) =>
        [struck, { by, reason, issuedBefore: Number(issuedBeforeMs) }] as const
      ),
    );
    this.#onChange();
    try {
      const text = JSON.stringify({
        version: FILE_VERSION,
        struck: Object.fromEntries(this.#struck),
      });
      if (text === await readTextIfExists(this.#file)) return;
      await writeFileAtomic(this.#file, text);
    } catch (error) {
      log.warning("Cannot keep who was struck; it counts until this program ends", {
        file: this.#file,
        reason: errorText(error),
      });
    }
  }
}
