/**
 * The playbooks as Ansible and its linters see them, on the oldest ansible-core that they are for
 * and on the newest. Where pip installs neither, these tests are skipped and say why.
 */
import { equal, match, ok } from "node:assert/strict";
import { join } from "node:path";
import { ROOT } from "../../tools/repository.ts";
import { NEWEST, OLDEST, openToolchain, type Toolchain } from "./toolchain.ts";

const PLAYBOOKS = [
  "site.yml",
  "upgrade.yml",
  "upgrade_engines.yml",
  "remove_node.yml",
  "rotate_certs.yml",
  "backup.yml",
  "monitoring.yml",
];

const oldest = await toolchainOrWord(OLDEST);
const newest = await toolchainOrWord(NEWEST);

async function toolchainOrWord(recipe: typeof OLDEST): Promise<Toolchain | undefined> {
  const opened = await openToolchain(recipe);
  if (!("why" in opened)) return opened;
  const text = `skipped: no ansible-core ${recipe.version} here: ${opened.why}\n`;
  Deno.stderr.writeSync(new TextEncoder().encode(text));
  return undefined;
}

interface Finished {
  readonly code: number;
  readonly text: string;
}

/** Runs one of Ansible's programs in the playbooks' folder. */
async function ansible(
  toolchain: Toolchain,
  argv: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<Finished> {
  const [program = "", ...args] = argv;
  const output = await new Deno.Command(join(toolchain.bin, program), {
    args,
    cwd: join(ROOT, "ansible"),
    stdin: "null",
    env: {
      ANSIBLE_NOCOLOR: "1",
      NO_COLOR: "1",
      PATH: `${toolchain.bin}:${Deno.env.get("PATH") ?? ""}`,
      ...env,
    },
  }).output();
  const decoder = new TextDecoder();
  return {
    code: output.code,
    text: decoder.decode(output.stdout) + decoder.decode(output.stderr),
  };
}

for (const toolchain of [oldest, newest]) {
  if (toolchain === undefined) continue;

  Deno.test(`ansible-core ${toolchain.version} reads every playbook`, async () => {
    const { code, text } = await ansible(toolchain, [
      "ansible-playbook",
      "--syntax-check",
      ...PLAYBOOKS,
    ]);
    equal(code, 0, text);
    ok(!/warning|deprecat/i.test(text), text);
  });

  Deno.test(`ansible-core ${toolchain.version} tells all that is wrong with an inventory`, async () => {
    const { code, text } = await preflight(toolchain, BROKEN);
    ok(code !== 0, text);
    for (const words of BROKEN_WORDS) match(text.replaceAll(/\s+/g, " "), words);
  });

  Deno.test(`ansible-core ${toolchain.version} stops at an inventory that cannot be parsed`, async () => {
    const { code, text } = await preflight(toolchain, "[heddle_control\ncontrol-1\n");
    ok(code !== 0, text);
    match(text, /Failed to parse inventory|Unable to parse|parse/i);
  });
}

Deno.test({
  name: "ansible-lint's production profile has nothing to say",
  ignore: newest === undefined,
  async fn() {
    if (newest === undefined) return;
    const { code, text } = await ansible(newest, ["ansible-lint", "--offline", "--nocolor"]);
    equal(code, 0, text);
  },
});

Deno.test({
  name: "yamllint has nothing to say",
  ignore: newest === undefined,
  async fn() {
    if (newest === undefined) return;
    const { code, text } = await ansible(newest, ["yamllint", "--strict", "."]);
    equal(code, 0, text);
  },
});

Deno.test({
  name: "what playbooks compute is what it must be",
  ignore: oldest === undefined,
  async fn() {
    if (oldest === undefined) return;
    const tests = join(ROOT, "tests/ansible");
    const { code, text } = await ansible(oldest, [
      "python",
      "-m",
      "unittest",
      "discover",
      "--start-directory",
      tests,
      "--pattern",
      "*_test.py",
    ], { PYTHONDONTWRITEBYTECODE: "1" });
    equal(code, 0, text);
    match(text, /Ran \d{2,} tests/);
  },
});

/** Many mistakes at once, each of a kind that people make. */
const BROKEN = `[heddle_control]
control-1
control-2

[heddle_routers]

[fabric_ib_a]
gpu-1 heddle_fabric_hcas="{'fabric_ib_a': ['mlx5_0', 'mlx5_0:1']}"
gpu-2 heddle_address=gpu-1

[fabric_ib_b]
gpu-1

[fabric_ib_z]
gpu-3 heddle_gpus_min=eight heddle_firewall=yes

[heddle_agents:children]
fabric_ib_a
fabric_ib_b
fabric_ib_z

[heddle_canary]
control-1

[heddle:children]
heddle_control
heddle_routers
heddle_agents
`;

const BROKEN_WORDS = [
  /heddle_control has 2 machines \(control-1, control-2\): want one/,
  /heddle_routers has no machine/,
  /control-1 is in heddle_canary and not in heddle_agents/,
  /gpu-1 and gpu-2 have one address, gpu-1/,
  /gpu-3: heddle_gpus_min is "eight": want a number/,
  /gpu-3: heddle_firewall is "yes": want true or false/,
];

async function preflight(toolchain: Toolchain, inventory: string): Promise<Finished> {
  const folder = await Deno.makeTempDir({ prefix: "heddle-ansible-" });
  try {
    const file = join(folder, "inventory.ini");
    await Deno.writeTextFile(file, inventory);
    return await ansible(toolchain, [
      "ansible-playbook",
      "--inventory",
      file,
      "--tags",
      "preflight",
      "--extra-vars",
      JSON.stringify({ heddle_cache_folder: join(folder, "cache"), heddle_dists: {} }),
      "site.yml",
    ], { ANSIBLE_LOCAL_TEMP: join(folder, "tmp") });
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
}
