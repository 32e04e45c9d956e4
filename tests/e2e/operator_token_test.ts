/** `heddle` as the holder of a token: the launcher and the program as they are, against a real control. */
import { deepEqual, equal, match } from "node:assert/strict";
import { join } from "node:path";
import { formatAddress } from "@heddle/common/address";
import { sha256 } from "../../control/edge/identity/operators.ts";
import { Site } from "../../control/site_fake.ts";
import { ROOT, runCommand } from "./heddle.ts";

const ADMIN = "secret-of-an-admin";
const VIEWER = "secret-of-a-viewer";

Deno.test("heddle shows the token that a flag or the environment names, and no certificate then", async (t) => {
  await using site = await Site.make();
  const lines = [`root admin ${await sha256(ADMIN)}`, `ann viewer ${await sha256(VIEWER)}`];
  const tokensFile = join(site.folder, "tokens");
  await Deno.writeTextFile(tokensFile, lines.join("\n"));
  const control = await site.start({}, { tokensFile });
  // Elsewhere than the configuration, which alone `heddle` may read otherwise.
  const secrets = await Deno.makeTempDir();
  const save = async (name: string, text: string, mode = 0o600) => {
    const file = join(secrets, name);
    await Deno.writeTextFile(file, text);
    await Deno.chmod(file, mode);
    return file;
  };
  const config = join(site.folder, "ctl");
  await Deno.mkdir(config);
  const operator = await site.issue({ role: "operator", name: "bob" });
  await Deno.writeTextFile(join(config, "cert.pem"), operator.cert);
  await Deno.writeTextFile(join(config, "key.pem"), operator.key);
  await Deno.writeTextFile(join(config, "ca.pem"), operator.ca);
  await Deno.writeTextFile(
    join(config, "config.yaml"),
    JSON.stringify({
      current: "test",
      contexts: [{
        name: "test",
        url: `https://${formatAddress(control.admin)}`,
        tls: {
          certificate_file: join(config, "cert.pem"),
          key_file: join(config, "key.pem"),
          ca_file: join(config, "ca.pem"),
        },
      }],
    }),
  );
  const heddle = (args: readonly string[], env: Readonly<Record<string, string>> = {}) =>
    runCommand(join(ROOT, "bin/heddle"), args, {
      HEDDLE_DENO: Deno.execPath(),
      HEDDLE_CTL_CONFIG: join(config, "config.yaml"),
      ...env,
    });
  const viewer = await save("viewer", `${VIEWER}\n`);
  const admin = await save("admin", ADMIN);
  try {
    await t.step("a viewer sees, and decides nothing, whatever certificate there is", async () => {
      const seen = await heddle(["nodes", "--token-file", viewer, "--json"]);
      deepEqual([seen.code, seen.stdout, seen.stderr], [0, "[]\n", ""]);
      const refused = await heddle(["models", "pause", "demo", `--token-file=${viewer}`]);
      equal(refused.code, 1);
      match(refused.stderr, /viewer/);
    });
    await t.step("the environment names one too, and the flag goes before it", async () => {
      const env = { HEDDLE_TOKEN_FILE: viewer };
      equal((await heddle(["models", "pause", "demo"], env)).code, 1);
      const paused = await heddle(["models", "pause", "demo", "--token-file", admin], env);
      equal(paused.code, 0, paused.stderr);
      const audit = await heddle(["audit", "--json"], { HEDDLE_TOKEN_FILE: admin });
      equal(JSON.parse(audit.stdout)[0]?.by, "root");
    });
    await t.step("a file that others can read is told of, and works", async () => {
      const open = await save("open", VIEWER, 0o644);
      const seen = await heddle(["nodes", "--token-file", open, "--json"]);
      equal(seen.code, 0);
      equal(
        seen.stderr,
        `Warning: ${open} can be read by others (mode 0644): chmod 600 ${open}\n`,
      );
    });
    await t.step(
      "a file that is not there, is empty, or holds another token is told of",
      async () => {
        const missing = join(secrets, "missing");
        const gone = await heddle(["nodes", "--token-file", missing]);
        equal(gone.code, 1);
        match(gone.stderr, /Cannot read .*\/missing/);
        const empty = await heddle(["nodes", "--token-file", await save("empty", "\n")]);
        equal(empty.code, 1);
        match(empty.stderr, /\/empty.*holds no token/);
        const wrong = await heddle(["nodes", "--token-file", await save("wrong", "guess")]);
        equal(wrong.code, 1);
        match(wrong.stderr, /token/);
      },
    );
  } finally {
    await Deno.remove(secrets, { recursive: true });
  }
});
