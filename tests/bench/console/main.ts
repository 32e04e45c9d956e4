/**
 * `deno task bench:console STATE`: what a console costs. STATE is the folder of a `deno task up` that
 * runs (`.heddle/up`): its control gets 200 nodes more, of eight GPUs whose memory changes with every
 * heartbeat, first without a console and then with three on the fleet page. Then a real Chromium opens
 * the page: until the first node is on the screen, and the bytes until then.
 */
import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { create } from "@bufbuild/protobuf";
import { createLeaf, type KeyPairPem } from "@heddle/common/pki";
import { connectRpc, type RpcConnection } from "@heddle/common/rpc_client";
import { delay } from "@heddle/common/task";
import { InventorySchema } from "@heddle/proto/gen/types";
import { parse } from "yaml";
import { z } from "zod";
import { inventory } from "../../../control/core/testing/builders.ts";
import { AgentStream } from "../../../control/edge/agent_fake.ts";
import { encodePlain } from "../../../control/edge/encode_plain.ts";
import { runTool, say } from "../../../tools/say.ts";
import { CHROMIUM, startBrowser } from "../../console/browser.ts";

const NODES = 200;
const CONSOLES = 3;
const HEARTBEAT_MS = 5_000;
/** Long enough that what was allocated for the registrations is given back. */
const WATCH_MS = 40_000;
const OPENS = 5;
const MIB = 2 ** 20;
const TOPICS = "status,nodes,replicas,models,decisions";

const configSchema = z.object({
  cluster: z.string(),
  agents: z.object({ listen: z.string() }),
  metrics: z.object({ listen: z.string() }),
  console: z.object({ listen: z.string() }),
});

async function main(): Promise<void> {
  const state = Deno.args[0] ?? ".heddle/up";
  const config = configSchema.parse(
    parse(await Deno.readTextFile(join(state, "control/control.yaml"))),
  );
  await using browser = CHROMIUM === undefined ? undefined : await startBrowser();
  const ca = await Deno.readTextFile(join(state, "ca/ca.pem"));
  const authority = {
    certificatePem: ca,
    keyPem: await Deno.readTextFile(join(state, "ca/ca-key.pem")),
  };
  const url = `https://${config.agents.listen}`;
  const fleet = new Fleet({ url, cluster: config.cluster, authority });
  const page = `http://${config.console.listen}/console/`;
  try {
    for (let index = 1; index <= NODES; index++) await fleet.join(`bench-${index}`);
    await watched("no console", config.metrics.listen);
    const left = new AbortController();
    const consoles = Array.from({ length: CONSOLES }, () => new Console(page, left.signal));
    await watched(`${CONSOLES} consoles`, config.metrics.listen);
    for (const each of consoles) say(`  ${each.words(WATCH_MS)}`);
    left.abort();
    if (browser === undefined) return say("No Chromium: the page was not opened");
    for (let open = 0; open < OPENS; open++) {
      const begun = performance.now();
      const opened = await browser.open(page);
      await opened.getByRole("article", { name: "node bench-1", exact: true }).waitFor();
      const shownMs = performance.now() - begun;
      const loaded = await opened.evaluate(() =>
        performance.getEntries().flatMap((entry) =>
          "transferSize" in entry && typeof entry.transferSize === "number" &&
            !entry.name.includes("/live") && !entry.name.includes("/history")
            ? [entry.transferSize]
            : []
        )
      );
      const kb = loaded.reduce((sum, each) => sum + each, 0) / 1_000;
      say(
        `first node on the screen after ${(shownMs / 1_000).toFixed(2)} s, ` +
          `${kb.toFixed(0)} kB in ${loaded.length} files`,
      );
      await opened.context().close();
    }
  } finally {
    fleet.leave();
  }
}

interface FleetOptions {
  readonly url: string;
  readonly cluster: string;
  readonly authority: KeyPairPem;
}

/** Agents that say that they are there, from one process. */
class Fleet {
  readonly #options: FleetOptions;
  readonly #open: { readonly connection: RpcConnection; readonly stream: AgentStream }[] = [];
  readonly #beats: ReturnType<typeof setInterval>[] = [];

  constructor(options: FleetOptions) {
    this.#options = options;
  }

  async join(name: string): Promise<void> {
    const { url, cluster, authority } = this.#options;
    const leaf = await createLeaf(authority, {
      identity: { cluster, role: "agent", name },
      hosts: ["127.0.0.1"],
      validMs: 3_600_000,
      now: Date.now(),
    });
    const tls = { cert: leaf.certificatePem, key: leaf.keyPem, ca: authority.certificatePem };
    const connection = connectRpc({ url, tls });
    const stream = new AgentStream(connection.transport);
    this.#open.push({ connection, stream });
    const own = encodePlain(InventorySchema, inventory(name, { gpus: 8, fabric: "ib-bench" }));
    stream.send({
      case: "register",
      value: {
        node: name,
        agentVersion: "0.1.0",
        bootId: "b",
        agentInstance: "i",
        address: "127.0.0.1",
        inventory: own,
      },
    });
    await stream.expect("registered");
    let beat = 0;
    this.#beats.push(setInterval(() => {
      beat++;
      const live = create(InventorySchema, own);
      for (const gpu of live.gpus) gpu.memoryUsedMib = 1_000 + (beat * 37 + gpu.index) % 50_000;
      stream.send({
        case: "heartbeat",
        value: { gpus: live.gpus, hcas: live.hcas, fabrics: live.fabrics, hardwarePresent: true },
      });
    }, HEARTBEAT_MS));
  }

  leave(): void {
    for (const beat of this.#beats) clearInterval(beat);
    for (const { stream, connection } of this.#open) {
      stream.abort();
      connection.close();
    }
  }
}

/** What an open page is sent, without the page. */
class Console {
  #first = 0;
  #bytes = 0;

  constructor(page: string, signal: AbortSignal) {
    void this.#read(`${page}live?topics=${TOPICS}`, signal);
  }

  words(ms: number): string {
    const rate = (this.#bytes - this.#first) / (ms / 1_000) / 1_000;
    return `${(this.#first / 1_000_000).toFixed(2)} MB at first, ${
      rate.toFixed(0)
    } kB a second then`;
  }

  async #read(url: string, signal: AbortSignal): Promise<void> {
    try {
      const { body } = await fetch(url, { signal });
      const begun = performance.now();
      for await (const chunk of body ?? []) {
        this.#bytes += chunk.length;
        if (performance.now() - begun < 1_000) this.#first = this.#bytes;
      }
    } catch (error) {
      if (!signal.aborted) throw error;
    }
  }
}

/** Says what control took of memory and processor while a while passes. */
async function watched(what: string, metrics: string): Promise<void> {
  const [pid, before] = [await pidOf(metrics), performance.now()];
  const cpu = await cpuSeconds(pid);
  await delay(WATCH_MS, new AbortController().signal);
  const used = await cpuSeconds(pid) - cpu;
  const share = 100 * used / ((performance.now() - before) / 1_000);
  const text = await (await fetch(`http://${metrics}/metrics`)).text();
  const kind = (name: string) =>
    Number(
      new RegExp(`^heddle_process_memory_bytes\\{kind="${name}"\\} (\\S+)$`, "m").exec(text)?.[1],
    ) / MIB;
  say(
    `${what}: ${kind("resident").toFixed(0)} MiB, of them heap ${kind("heap_used").toFixed(0)}; ` +
      `${share.toFixed(1)} % of a core`,
  );
}

const run = promisify(execFile);

async function pidOf(listen: string): Promise<string> {
  const port = listen.split(":").at(-1) ?? "";
  const { stdout } = await run("ss", ["-Hltnp", `sport = :${port}`]);
  const pid = /pid=(\d+)/.exec(stdout)?.[1];
  if (pid === undefined) throw new Error(`Nothing listens on ${listen}`);
  return pid;
}

/** Of its whole life; in hundredths of a second, which `ps` does not give. */
async function cpuSeconds(pid: string): Promise<number> {
  const { stdout } = await run("cat", [`/proc/${pid}/stat`]);
  const fields = stdout.slice(stdout.lastIndexOf(")") + 2).split(" ");
  return (Number(fields[11]) + Number(fields[12])) / 100;
}

if (import.meta.main) await runTool(main);
