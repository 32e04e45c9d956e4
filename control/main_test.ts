/** The program as it is started: its launcher, its permission set, its flags and its signals. */
import { deepEqual, equal, match } from "node:assert/strict";

const ROOT = new URL("..", import.meta.url).pathname;
const LAUNCHER = `${ROOT}/bin/heddle-control`;

/** A state folder with a configuration; the program may read and write nothing else. */
async function place(config: string) {
  const folder = await Deno.makeTempDir();
  await Deno.writeTextFile(`${folder}/control.yaml`, config.replaceAll("STATE", folder));
  await Deno.copyFile(`${ROOT}/examples/catalog.yaml`, `${folder}/catalog.yaml`);
  return {
    folder,
    program: (...args: string[]) =>
      new Deno.Command(LAUNCHER, {
        args,
        env: { HEDDLE_STATE: folder, HEDDLE_DENO: Deno.execPath() },
        stdin: "null",
        stdout: "piped",
        stderr: "piped",
      }),
    [Symbol.asyncDispose]: () => Deno.remove(folder, { recursive: true }),
  };
}

const ANY_PORTS = `cluster: lab
agents: {listen: "127.0.0.1:0"}
admin: {listen: "127.0.0.1:0"}
metrics: {listen: "127.0.0.1:0"}
catalog_file: STATE/catalog.yaml
state_directory: STATE/state
`;

async function outcome(command: Deno.Command): Promise<{ code: number; out: string; err: string }> {
  const { code, stdout, stderr } = await command.output();
  const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
  return { code, out: text(stdout), err: text(stderr) };
}

Deno.test("heddle-control runs under its permission set, reloads and stops on signals", async () => {
  await using made = await place(ANY_PORTS);
  const child = made.program("--config", `${made.folder}/control.yaml`).spawn();
  const out = child.stdout.cancel();
  const lines = linesOf(child.stderr);
  const started = await lines.next(/Started/);
  const port = /metrics=127\.0\.0\.1:(\d+)/.exec(started)?.[1];
  equal(await (await fetch(`http://127.0.0.1:${port}/ready`)).text(), "ready\n");
  await Deno.writeTextFile(`${made.folder}/catalog.yaml`, "models: []\n# changed\n");
  child.kill("SIGHUP");
  await lines.next(/A new catalog waits: it has no models/);
  child.kill("SIGTERM");
  await lines.next(/Stopped; engines go on/);
  await lines.rest();
  deepEqual(await child.status, { success: true, code: 0, signal: null });
  await out;
});

Deno.test("heddle-control --check-config and --check-catalog say what is wrong, and exit with 2", async () => {
  await using made = await place("cluster: lab\nadmn: {}\n");
  const config = `${made.folder}/control.yaml`;
  deepEqual(await outcome(made.program("--check-config", config)), {
    code: 2,
    out: "",
    err: `heddle-control: ${config}:2:1: admn: unknown key\n`,
  });
  const catalog = `${made.folder}/catalog.yaml`;
  deepEqual(await outcome(made.program("--check-catalog", catalog)), {
    code: 0,
    out: `${catalog}: ok\n`,
    err: "",
  });
  await Deno.writeTextFile(catalog, "models: [{name: a}]\n");
  const bad = await outcome(made.program("--check-catalog", catalog));
  equal(bad.code, 2);
  match(bad.err, /catalog\.yaml:1:10: models\[0\]\.source: expected string/);
});

Deno.test("heddle-control may not read outside of its folders, and says so in one line", async () => {
  await using made = await place(ANY_PORTS);
  const { code, err } = await outcome(made.program("--config", "/etc/shadow"));
  equal(code, 2);
  match(
    err,
    /^heddle-control: Cannot read \/etc\/shadow: this program's permissions do not include it[^\n]*\n$/,
  );
  await Deno.writeTextFile(
    `${made.folder}/control.yaml`,
    ANY_PORTS.replaceAll("STATE/state", "/etc/heddle-state"),
  );
  const elsewhere = await outcome(made.program("--config", `${made.folder}/control.yaml`));
  equal(elsewhere.code, 1);
  match(elsewhere.err, /Cannot use state_directory \/etc\/heddle-state: Requires write access/);
});

function linesOf(stream: ReadableStream<Uint8Array>) {
  const reader = stream.pipeThrough(new TextDecoderStream()).getReader();
  let text = "";
  return {
    /** The rest of the log up to and with the first line that matches. */
    async next(wanted: RegExp): Promise<string> {
      while (true) {
        const end = text.search(wanted);
        const newline = end < 0 ? -1 : text.indexOf("\n", end);
        if (newline >= 0) {
          const seen = text.slice(0, newline);
          text = text.slice(newline + 1);
          return seen;
        }
        const { value, done } = await reader.read();
        if (done) throw new Error(`the log ended without ${wanted}: ${text}`);
        text += value;
      }
    },
    async rest(): Promise<void> {
      while (!(await reader.read()).done);
    },
  };
}
