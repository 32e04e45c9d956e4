/**
 * `deno task bench:fetch`: what fetching a model costs, beside curl in the same run, from a hub on
 * this machine: the same file, alternately, to the same disk. curl checks nothing, so it is shown
 * with and without sha256sum behind it.
 *
 *   --mib 1024  --rounds 3
 */
import { parseArgs } from "node:util";
import { fileURLToPath } from "node:url";
import { COMMIT, fakeHub, someBytes } from "../../../agent/edge/fetch/hub_fake.ts";
import { encodeRequest } from "../../../agent/core/weights/documents.ts";
import { say } from "../../../tools/say.ts";

const FETCH = fileURLToPath(new URL("../../../bin/heddle-fetch", import.meta.url));
const NAME = "model.safetensors";
const MIB = 1024 ** 2;

interface Took {
  readonly seconds: number;
  /** Of the program and all its children, in user and system. */
  readonly cpuSeconds: number;
}

if (import.meta.main) await main();

async function main(): Promise<void> {
  const { values } = parseArgs({
    args: Deno.args,
    options: {
      mib: { type: "string", default: "1024" },
      rounds: { type: "string", default: "3" },
    },
  });
  const mib = Number(values.mib);
  const folder = await Deno.makeTempDir({ prefix: "heddle-bench-" });
  try {
    await using hub = await fakeHub({ [NAME]: someBytes(mib * MIB) });
    const url = `${hub.url}/org/name/resolve/${COMMIT}/${NAME}`;
    const curl = `curl --silent --fail --location --output ${folder}/curl ${url}`;
    const ways: Readonly<Record<string, () => Promise<Took>>> = {
      "curl": () => timed(["/bin/sh", "-c", curl]),
      "curl, sha256sum": () => timed(["/bin/sh", "-c", `${curl} && sha256sum ${folder}/curl`]),
      "heddle-fetch, 1 connection": () => fetched(hub.url, folder, 1),
      "heddle-fetch, 4 connections": () => fetched(hub.url, folder, 4),
    };
    const found = new Map<string, Took[]>();
    for (let round = 0; round < Number(values.rounds); round++) {
      for (const [name, run] of Object.entries(ways)) {
        found.set(name, [...found.get(name) ?? [], await run()]);
      }
    }
    say(`${mib} MiB from loopback, ${values.rounds} times each; the middle one`);
    say(`${"".padEnd(30)}${"MiB/s".padStart(8)}${"CPU s a GiB".padStart(14)}`);
    for (const [name, tooks] of found) {
      const rate = middle(tooks.map(({ seconds }) => mib / seconds));
      const cpu = middle(tooks.map(({ cpuSeconds }) => cpuSeconds * 1024 / mib));
      say(`${name.padEnd(30)}${rate.toFixed(0).padStart(8)}${cpu.toFixed(2).padStart(14)}`);
    }
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

async function fetched(hub: string, folder: string, connections: number): Promise<Took> {
  const into = `${folder}/into`;
  await Deno.mkdir(into);
  const request = encodeRequest({ verb: "fetch", source: "hf://org/name", into, hub, connections });
  try {
    return await timed([FETCH], {
      HEDDLE_DENO: Deno.execPath(),
      HEDDLE_FETCH_INTO: into,
      HEDDLE_FETCH_REQUEST: request,
    });
  } finally {
    await Deno.remove(into, { recursive: true });
  }
}

/** Throws with what the command said when it fails. */
async function timed(argv: readonly string[], env: Record<string, string> = {}): Promise<Took> {
  const script = 'TIMEFORMAT="took %R %U %S"; time "$@"';
  const { code, stderr, stdout } = await new Deno.Command("/bin/bash", {
    args: ["-c", script, "bash", ...argv],
    env,
    stdin: "null",
  }).output();
  const said = new TextDecoder().decode(stderr);
  const [, real, user, system] = /^took (\S+) (\S+) (\S+)$/m.exec(said) ?? [];
  if (code !== 0 || real === undefined) {
    throw new Error(`${argv[0]} ended with ${code}: ${said}${new TextDecoder().decode(stdout)}`);
  }
  return { seconds: Number(real), cpuSeconds: Number(user) + Number(system) };
}

function middle(values: readonly number[]): number {
  return values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)] ?? Number.NaN;
}
