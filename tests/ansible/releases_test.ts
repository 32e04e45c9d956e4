/** Which releases a machine keeps: the one in use, the one it would be put back to, and a few more. */
import { deepEqual, equal } from "node:assert/strict";
import { join } from "node:path";
import { ROOT } from "../../tools/repository.ts";
import { OLDEST, openToolchain } from "./toolchain.ts";

const toolchain = await openToolchain(OLDEST);
const why = "why" in toolchain ? toolchain.why : undefined;
if (why !== undefined) {
  const text = `skipped: which releases are kept is not looked at: ${why}\n`;
  Deno.stderr.writeSync(new TextEncoder().encode(text));
}

/** Puts a release to use as the plays do, on a machine that is a folder. */
async function use(home: string, version: string): Promise<void> {
  const play = [{
    hosts: "localhost",
    connection: "local",
    gather_facts: false,
    vars: {
      heddle_home: home,
      heddle_current: join(home, "current"),
      heddle_version: version,
      heddle_release_folder: join(home, "releases", version),
    },
    tasks: [{
      name: "Use it",
      "ansible.builtin.include_role": { name: "common", tasks_from: "current" },
    }],
  }];
  const file = join(home, "play.yml");
  await Deno.writeTextFile(file, JSON.stringify(play));
  const output = await new Deno.Command(
    join("bin" in toolchain ? toolchain.bin : "", "ansible-playbook"),
    {
      args: ["--inventory", "localhost,", file],
      cwd: join(ROOT, "ansible"),
      env: { ANSIBLE_NOCOLOR: "1", ANSIBLE_ROLES_PATH: join(ROOT, "ansible/roles") },
      stdin: "null",
    },
  ).output();
  const decoder = new TextDecoder();
  equal(output.code, 0, decoder.decode(output.stdout) + decoder.decode(output.stderr));
}

async function kept(home: string): Promise<readonly string[]> {
  const found = await Array.fromAsync(Deno.readDir(join(home, "releases")));
  return found.map(({ name }) => name).sort();
}

Deno.test({
  name: "a machine keeps the release it would be put back to, however many were tried in vain",
  ignore: why !== undefined,
  async fn() {
    const home = await Deno.makeTempDir();
    try {
      const versions = ["0.1.0", "0.1.1", "0.1.2", "0.1.3", "0.1.4"];
      for (const [index, version] of versions.entries()) {
        await Deno.mkdir(join(home, "releases", version), { recursive: true });
        await Deno.utime(join(home, "releases", version), 1_000 + index, 1_000 + index);
      }
      await Deno.symlink("releases/0.1.0", join(home, "current"));
      await use(home, "0.1.4");
      equal(await Deno.readLink(join(home, "current")), "releases/0.1.4");
      deepEqual(await kept(home), ["0.1.0", "0.1.3", "0.1.4"]);
      await use(home, "0.1.4");
      deepEqual(await kept(home), ["0.1.0", "0.1.3", "0.1.4"]);
    } finally {
      await Deno.remove(home, { recursive: true });
    }
  },
});
