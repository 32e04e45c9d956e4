/** ctl when things are not as they should be: one line that says what to do. */
import { equal, match } from "node:assert/strict";
import { join } from "node:path";
import { issueCertificate, openAuthority } from "../../tools/up/layout/certificates.ts";
import { type Finished, reserve, ROOT, runCommand } from "./heddle.ts";

function ctl(config: string, ...args: string[]): Promise<Finished> {
  return runCommand(join(ROOT, "bin/heddle"), args, {
    HEDDLE_CTL_CONFIG: config,
    HEDDLE_DENO: Deno.execPath(),
  });
}

function oneLine(result: Finished, words: RegExp): void {
  match(result.stderr, words);
  equal(result.stderr.trimEnd().split("\n").length, 1, result.stderr);
  equal(result.stdout, "");
}

Deno.test("ctl says in one line when control cannot be reached", async () => {
  await using place = await reserve();
  const tls = await issueCertificate(await openAuthority(join(place.state, "ca")), {
    role: "operator",
    name: "test",
    folder: place.state,
  });
  const config = join(place.state, "config.yaml");
  const url = `https://127.0.0.1:${place.port}`;
  await Deno.writeTextFile(
    config,
    JSON.stringify({ current: "a", contexts: [{ name: "a", url, tls }] }),
  );
  const result = await ctl(config, "nodes");
  equal(result.code, 1);
  oneLine(result, new RegExp(`^Cannot reach control at ${url}: .*Is it running`));
  oneLine(await ctl(config, "nodes", "--context", "b"), /^No context "b" in .*: it has a$/m);
});

Deno.test("ctl places what is wrong in its configuration", async () => {
  await using place = await reserve();
  const config = join(place.state, "config.yaml");
  await Deno.writeTextFile(config, "current: a\ncontexts:\n  - name: b\n    url: x\n");
  const result = await ctl(config, "nodes");
  equal(result.code, 1);
  oneLine(result, /config\.yaml:1:10: current: no context is named "a"/);
  oneLine(await ctl(join(place.state, "none.yaml"), "nodes"), /^Cannot read .*none\.yaml/);
});
