/**
 * What monitoring.yml writes, judged by Prometheus' own promtool: targets, certificate and alert rules.
 * Skipped, with the reason, where there is no promtool or no Ansible.
 */
import { deepEqual, equal, match, rejects } from "node:assert/strict";
import { X509Certificate } from "node:crypto";
import { join } from "node:path";
import { parse } from "yaml";
import { z } from "zod";
import { identityOfSubjectAltName } from "@heddle/common/identity";
import { ROOT } from "../../tools/repository.ts";
import { DASHBOARDS } from "../../tools/dashboards/generate.ts";
import { OLDEST, openToolchain } from "./toolchain.ts";

const INVENTORY = `control-1 ansible_host=10.0.0.10
router-1 ansible_host=fd00::20
gpu-a-1 ansible_host=10.0.0.31
prom-1 ansible_connection=local

[heddle_control]
control-1
[heddle_routers]
router-1
[fabric_ib_a]
gpu-a-1
[heddle_agents:children]
fabric_ib_a
[heddle:children]
heddle_control
heddle_routers
heddle_agents
[heddle_monitoring]
prom-1
[heddle_grafana]
prom-1
`;

const configSchema = z.object({
  scrape_configs: z.array(z.object({
    job_name: z.string(),
    scheme: z.string(),
    static_configs: z.array(z.object({
      targets: z.array(z.string()),
      labels: z.record(z.string(), z.string()),
    })),
  })),
});

const providersSchema = z.object({
  apiVersion: z.literal(1),
  providers: z.array(z.object({ type: z.string(), options: z.object({ path: z.string() }) })),
});

const toolchain = await openToolchain(OLDEST);
const promtool = await runs("promtool", ["--version"]);
const why = promtool ? "why" in toolchain ? toolchain.why : undefined : "there is no promtool";
if (why !== undefined) {
  Deno.stderr.writeSync(
    new TextEncoder().encode(`skipped: monitoring.yml is not judged: ${why}\n`),
  );
}

Deno.test({
  name: "promtool accepts what monitoring.yml writes, and it has every program with its address",
  ignore: why !== undefined,
  async fn() {
    const folder = await Deno.makeTempDir();
    try {
      await Deno.writeTextFile(join(folder, "inventory.ini"), INVENTORY);
      const values = {
        heddle_cluster: "test",
        heddle_ca_folder: join(folder, "ca"),
        heddle_cache_folder: join(folder, "cache"),
        heddle_ctl: join(ROOT, "bin/heddle"),
        heddle_metrics_tls_listen: "0.0.0.0",
        heddle_prometheus_folder: join(folder, "prometheus"),
        heddle_prometheus_group: "root",
        heddle_prometheus_unit: "",
        heddle_prometheus_config: join(folder, "prometheus/prometheus.yml"),
        heddle_grafana_provisioning: join(folder, "grafana/provisioning"),
        heddle_grafana_dashboards: join(folder, "grafana/dashboards"),
        heddle_grafana_group: "root",
        heddle_grafana_unit: "",
        ansible_become: false,
        ansible_python_interpreter: "/usr/bin/python3",
      };
      await must([values.heddle_ctl, "ca", "init", "--cluster", "test"], {
        HEDDLE_CA: values.heddle_ca_folder,
      });
      await Deno.mkdir(join(values.heddle_grafana_provisioning, "dashboards"), { recursive: true });
      const play = (...args: readonly string[]) =>
        must([
          join("bin" in toolchain ? toolchain.bin : "", "ansible-playbook"),
          "--inventory",
          join(folder, "inventory.ini"),
          "--extra-vars",
          JSON.stringify(values),
          "monitoring.yml",
          ...args,
        ], { ANSIBLE_NOCOLOR: "1" });
      match(await play("--check"), /prom-1 .*failed=0/, "a check passes where nothing is yet");
      await rejects(Deno.stat(values.heddle_prometheus_folder), Deno.errors.NotFound);
      await rejects(Deno.stat(values.heddle_grafana_dashboards), Deno.errors.NotFound);
      await play();
      match(await play(), /prom-1 .*changed=0/, "a second run changes nothing");
      await providesDashboards(values);
      await must(["promtool", "check", "config", values.heddle_prometheus_config]);
      await must([
        "promtool",
        "check",
        "rules",
        join(values.heddle_prometheus_folder, "alerts.yml"),
      ]);
      const text = await Deno.readTextFile(values.heddle_prometheus_config);
      const { scrape_configs } = configSchema.parse(parse(text));
      deepEqual(
        scrape_configs.map(({ job_name, scheme, static_configs }) => [
          job_name,
          scheme,
          static_configs.map(({ targets, labels }) => `${labels["machine"]} ${targets}`),
        ]),
        [
          ["heddle-control", "https", ["control-1 10.0.0.10:9193"]],
          ["heddle-router", "https", ["router-1 [fd00::20]:9191", "router-1 [fd00::20]:9194"]],
          ["heddle-agent", "https", ["gpu-a-1 10.0.0.31:9192"]],
        ],
      );
      const cert = await Deno.readTextFile(join(values.heddle_prometheus_folder, "cert.pem"));
      const identity = identityOfSubjectAltName(new X509Certificate(cert).subjectAltName);
      deepEqual(identity, { cluster: "test", role: "monitor", name: "prom-1" });
    } finally {
      await Deno.remove(folder, { recursive: true });
    }
  },
});

/** Grafana is told of a folder, and every dashboard is in it. */
async function providesDashboards(
  { heddle_grafana_provisioning, heddle_grafana_dashboards }: {
    readonly heddle_grafana_provisioning: string;
    readonly heddle_grafana_dashboards: string;
  },
): Promise<void> {
  const file = join(heddle_grafana_provisioning, "dashboards/heddle.yaml");
  const { providers } = providersSchema.parse(parse(await Deno.readTextFile(file)));
  deepEqual(providers.map(({ type, options }) => [type, options.path]), [
    ["file", heddle_grafana_dashboards],
  ]);
  const titles: string[] = [];
  for await (const { name } of Deno.readDir(heddle_grafana_dashboards)) {
    const text = await Deno.readTextFile(join(heddle_grafana_dashboards, name));
    titles.push(z.object({ title: z.string() }).parse(JSON.parse(text)).title);
  }
  deepEqual(titles.sort(), DASHBOARDS.map(({ title }) => title).sort());
}

async function must(
  argv: readonly string[],
  env: Readonly<Record<string, string>> = {},
): Promise<string> {
  const [command = "", ...args] = argv;
  const output = await new Deno.Command(command, {
    args,
    cwd: join(ROOT, "ansible"),
    env: { HEDDLE_DENO: Deno.execPath(), ...env },
    stdin: "null",
  }).output();
  const decoder = new TextDecoder();
  const text = decoder.decode(output.stdout) + decoder.decode(output.stderr);
  equal(output.code, 0, text);
  return text;
}

async function runs(command: string, args: readonly string[]): Promise<boolean> {
  try {
    return (await new Deno.Command(command, { args: [...args] }).output()).success;
  } catch {
    return false;
  }
}
