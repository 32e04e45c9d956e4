/** Ctrl-C in a command that waits: its own words, its own exit code, and no process left. */
import { deepEqual, match } from "node:assert/strict";
import { fileURLToPath } from "node:url";

const LAUNCHER = fileURLToPath(new URL("../bin/heddle", import.meta.url));

/** A control that lets everybody in and answers nobody. */
function silentControl() {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const asked = Promise.withResolvers<void>();
  const connections: Deno.Conn[] = [];
  const ended = (async () => {
    for await (const connection of listener) {
      connections.push(connection);
      asked.resolve();
    }
  })();
  return {
    url: `http://127.0.0.1:${listener.addr.port}`,
    asked: asked.promise,
    async close() {
      listener.close();
      for (const connection of connections) connection.close();
      await ended;
    },
  };
}

const LINES = [
  ["nodes"],
  ["nodes", "--watch"],
  ["drain", "gpu-1", "--yes"],
  ["plan", "-"],
  ["backup"],
  ["logs", "demo-1", "-f"],
  ["doctor"],
];

for (const line of LINES) {
  Deno.test(`heddle ${line.join(" ")}: Ctrl-C ends it with 130 and a word`, async () => {
    const folder = await Deno.makeTempDir();
    const control = silentControl();
    try {
      const config = `${folder}/config.yaml`;
      await Deno.writeTextFile(
        config,
        `current: a\ncontexts: [{name: a, url: "${control.url}"}]\n`,
      );
      const child = new Deno.Command(LAUNCHER, {
        args: line,
        env: { HEDDLE_CTL_CONFIG: config, HEDDLE_DENO: Deno.execPath() },
        stdin: "null",
        stdout: "piped",
        stderr: "piped",
      }).spawn();
      await control.asked;
      child.kill("SIGINT");
      const { code, signal, stderr } = await child.output();
      deepEqual([code, signal, new TextDecoder().decode(stderr)], [130, null, "Interrupted\n"]);
    } finally {
      await control.close();
      await Deno.remove(folder, { recursive: true });
    }
  });
}

Deno.test("heddle nodes --watch | head: ends with 0 once nobody reads it", async () => {
  const folder = await Deno.makeTempDir();
  try {
    const config = `${folder}/config.yaml`;
    // Nothing listens there, and --watch says so again and again.
    await Deno.writeTextFile(
      config,
      `current: a\ncontexts: [{name: a, url: "http://127.0.0.1:1"}]\n`,
    );
    const child = new Deno.Command(LAUNCHER, {
      args: ["nodes", "--watch"],
      env: { HEDDLE_CTL_CONFIG: config, HEDDLE_DENO: Deno.execPath() },
      stdin: "null",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
    const reader = child.stdout.getReader();
    const { value } = await reader.read();
    match(new TextDecoder().decode(value), /^Cannot reach control/);
    await reader.cancel();
    const [{ code }, stderr] = await Promise.all([child.status, new Response(child.stderr).text()]);
    deepEqual([code, stderr], [0, ""]);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
