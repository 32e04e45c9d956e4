/** What is said where ctl reaches nothing: another fleet runs here, or a file may not be read. */
import { equal, match } from "node:assert/strict";
import { fileURLToPath } from "node:url";
import { createIssuing, createLeaf, createRoot } from "@heddle/common/pki";
import { startRpcServer } from "@heddle/common/rpc_server";
import { withClient } from "./client.ts";
import { loadContext } from "./config.ts";

const LAUNCHER = fileURLToPath(new URL("../bin/heddle", import.meta.url));

async function withFolder(use: (folder: string) => Promise<void>): Promise<void> {
  const folder = await Deno.makeTempDir();
  try {
    await use(folder);
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}

async function textOf(promise: Promise<unknown>): Promise<string> {
  return await promise.then(() => "", (error: Error) => error.message);
}

Deno.test("where nothing answers, fleets that run here are named with what to export", async () => {
  await withFolder(async (folder) => {
    const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    const { port } = listener.addr;
    listener.close();
    const named = `${folder}/config.yaml`;
    await Deno.writeTextFile(
      named,
      `current: a\ncontexts: [{name: a, url: "http://127.0.0.1:${port}"}]\n`,
    );
    const places = {
      userConfig: undefined,
      repository: undefined,
      running: ["/r/.heddle/up-1", folder],
    };
    const context = await loadContext({ ...places, named }, {});
    const hint = " Running on this machine, each with a configuration of its own:\n" +
      "  export HEDDLE_CTL_CONFIG=/r/.heddle/up-1/ctl/config.yaml\n" +
      `  export HEDDLE_CTL_CONFIG=${folder}/ctl/config.yaml`;
    const said = await textOf(withClient(context, (client) => client.getVersion({})));
    match(said, /^Cannot reach control at http:\/\/127\.0\.0\.1:\d+: /);
    equal(said.slice(said.indexOf("right context?") + "right context?".length), hint);
    const none = await textOf(loadContext({ ...places, named: undefined }, {}));
    // Unless this very machine has one in /etc/heddle/ctl.
    if (none !== "") equal(none.slice(-hint.length), hint);
  });
});

Deno.test("a control that is there and not trusted is no control that does not run", async () => {
  const now = Date.now();
  const authority = async (cluster: string) => {
    const root = await createRoot({ cluster, validMs: 3_600_000, now });
    const issuing = await createIssuing(root, { cluster, validMs: 3_600_000, now });
    const leaf = (role: "control" | "operator", hosts: readonly string[]) =>
      createLeaf(issuing, {
        identity: { cluster, role, name: "a" },
        ...{ hosts: [...hosts], validMs: 3_600_000, now },
      });
    return { root, issuing, leaf };
  };
  const [own, foreign] = [await authority("lab"), await authority("prod")];
  await withFolder(async (folder) => {
    const answer = async (hosts: readonly string[], caPem: string, mine = own) => {
      const [server, operator] = [
        await own.leaf("control", hosts),
        await mine.leaf("operator", []),
      ];
      const files = { cert: operator.certificatePem, key: operator.keyPem, ca: caPem };
      for (const [name, pem] of Object.entries(files)) {
        await Deno.writeTextFile(`${folder}/${name}.pem`, pem);
      }
      const control = await startRpcServer({
        listen: { host: "127.0.0.1", port: 0 },
        tls: {
          cert: `${server.certificatePem}\n${own.issuing.certificatePem}`,
          key: server.keyPem,
          ca: own.root.certificatePem,
        },
        routes: () => {},
      });
      const url = `https://127.0.0.1:${control.address.port}`;
      const tls = {
        certificate_file: `${folder}/cert.pem`,
        key_file: `${folder}/key.pem`,
        ca_file: `${folder}/ca.pem`,
      };
      const asked = withClient({ name: "a", url, tls }, (client) => client.getVersion({}));
      const said = await textOf(asked);
      await control.close(0);
      return said.replace(url, "URL");
    };
    match(
      await answer(["127.0.0.1"], foreign.root.certificatePem),
      /^Cannot trust control at URL: its certificate is of no authority in ca_file \(.+\)\. Is this /,
    );
    match(
      await answer(["10.0.0.1"], own.root.certificatePem),
      /^Cannot trust control at URL: its certificate is for other names \(.+\)\. Ask it by a name /,
    );
    // Whose certificate, and where it was shown, is said as well.
    match(
      await answer(["127.0.0.1"], own.root.certificatePem, foreign),
      /^Control at URL did not let this heddle in: the certificate was refused .+: heddle doctor$/,
    );
  });
});

async function heddle(config: string, ...args: string[]): Promise<string> {
  const { code, stderr } = await new Deno.Command(LAUNCHER, {
    args,
    env: { HEDDLE_CTL_CONFIG: config, HEDDLE_DENO: Deno.execPath() },
    stdin: "null",
  }).output();
  equal(code, 1);
  return new TextDecoder().decode(stderr);
}

Deno.test("a context whose files lie elsewhere is told so, with where they may lie", async () => {
  await withFolder(async (folder) => {
    const config = `${folder}/config.yaml`;
    const elsewhere = "/usr/share/heddle-nowhere/key.pem";
    const tls =
      `{certificate_file: ${folder}/c.pem, key_file: ${elsewhere}, ca_file: ${folder}/a.pem}`;
    await Deno.writeTextFile(
      config,
      `current: a\ncontexts: [{name: a, url: "https://127.0.0.1:1", tls: ${tls}}]\n`,
    );
    equal(
      await heddle(config, "nodes"),
      `Cannot use context "a": it names ${elsewhere}, and heddle may read only what lies in ` +
        `${folder}. Copy it there, and name the copy in ${config}\n`,
    );
    equal(
      await heddle(config, "apply", `${folder}/../nothing.yaml`),
      `Cannot read ${folder}/../nothing.yaml: there is no such file\n`,
    );
  });
});
