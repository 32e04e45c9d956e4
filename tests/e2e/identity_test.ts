/** A node is who its certificate says, and nobody without one gets in. */
import { equal, match, ok } from "node:assert/strict";
import { dirname, join } from "node:path";
import { parse, stringify } from "yaml";
import { issueCertificate, openAuthority } from "../../tools/up/certificates.ts";
import { eventually, Heddle, reserve, ROOT } from "./heddle.ts";

Deno.test("control refuses a node with another's certificate, and one of another authority", async () => {
  await using place = await reserve();
  await using heddle = await Heddle.start(place);
  const own = await openAuthority(join(place.state, "ca"));
  const foreign = await openAuthority(join(place.state, "foreign-ca"));
  const impostors = [
    { name: "other-name", authority: own, holder: "somebody-else", role: "agent" as const },
    { name: "router-cert", authority: own, holder: "router-cert", role: "router" as const },
    { name: "foreign", authority: foreign, holder: "foreign", role: "agent" as const },
  ];
  for (const impostor of impostors) {
    const folder = join(place.state, "impostors", impostor.name);
    const tls = await issueCertificate(impostor.authority, {
      role: impostor.role,
      name: impostor.holder,
      folder,
    });
    // It trusts the real control; only what it shows is wrong.
    await Deno.writeTextFile(tls.ca_file, own.certificatePem);
    const log = await runAgentUntilRefused(heddle, folder, impostor.name, { ...tls });
    match(log, /refused|denied|alert|certificate/i);
  }
  const nodes = JSON.parse((await heddle.ctl("nodes", "--json")).stdout);
  equal(nodes.length, 1, "no impostor has registered");
});

async function runAgentUntilRefused(
  heddle: Heddle,
  folder: string,
  node: string,
  tls: Readonly<Record<string, string>>,
): Promise<string> {
  const [existing] = JSON.parse((await heddle.ctl("nodes", "--json")).stdout);
  const template = await Deno.readTextFile(
    join(heddle.state, "agents", existing.name, "agent.yaml"),
  );
  const config = join(folder, "agent.yaml");
  const log = join(folder, "agent.log");
  await Deno.writeTextFile(
    config,
    stringify({
      ...parse(template),
      node,
      tls,
      state_directory: folder,
      engines: [],
      metrics: { listen: "127.0.0.1:0" },
    }),
  );
  const agent = new Deno.Command(join(ROOT, "bin/heddle-agent"), {
    args: ["--config", config],
    env: { HEDDLE_DENO: Deno.execPath(), HEDDLE_STATE: dirname(config), HEDDLE_LOG_FILE: log },
    stdin: "null",
    stdout: "null",
    stderr: "null",
  }).spawn();
  try {
    return await eventually(`${node} is refused`, async () => {
      const text = await Deno.readTextFile(log).catch(() => "");
      return /refused|denied|alert|certificate/i.test(text) ? text : undefined;
    });
  } finally {
    agent.kill("SIGTERM");
    const status = await agent.status;
    ok(status.code !== undefined);
  }
}
