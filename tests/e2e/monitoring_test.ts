/** Dashboards and alert rules against what the programs really export. */
import { deepEqual, ok } from "node:assert/strict";
import { join } from "node:path";
import { parse } from "yaml";
import { z } from "zod";
import { DASHBOARDS } from "../../tools/dashboards/generate.ts";
import { layPorts } from "../../tools/up/layout/ports.ts";
import { Heddle, reserve, ROOT } from "./heddle.ts";

const ALERTS = join(ROOT, "ansible/roles/monitoring/files/alerts.yml");

const alertsSchema = z.object({
  groups: z.array(z.object({ rules: z.array(z.object({ alert: z.string(), expr: z.string() })) })),
});

/** What is asked of Prometheus, with where it stands. */
async function expressions(): Promise<readonly (readonly [string, string])[]> {
  const { groups } = alertsSchema.parse(parse(await Deno.readTextFile(ALERTS)));
  return [
    ...groups.flatMap(({ rules }) => rules.map(({ alert, expr }) => [alert, expr] as const)),
    ...DASHBOARDS.flatMap((dashboard) => [
      ...dashboard.variables.map(({ name, metric }) =>
        [`${dashboard.uid} $${name}`, metric] as const
      ),
      ...dashboard.rows.flatMap(({ panels }) =>
        panels.flatMap((panel) =>
          panel.queries.map(({ expr }) => [`${dashboard.uid}: ${panel.title}`, expr] as const)
        )
      ),
    ]),
  ];
}

interface Exported {
  /** By metric, its kind. */
  readonly kinds: ReadonlyMap<string, string>;
  /** By metric, the labels of its samples; a metric without samples is not among them. */
  readonly labels: ReadonlyMap<string, ReadonlySet<string>>;
}

function readExported(texts: readonly string[]): Exported {
  const kinds = new Map<string, string>();
  const labels = new Map<string, Set<string>>();
  for (const line of texts.join("\n").split("\n")) {
    const type = /^# TYPE (\S+) (\S+)$/.exec(line);
    if (type !== null) kinds.set(type[1] ?? "", type[2] ?? "");
    const sample = /^([a-z_]+)(?:\{(.*)\})? /.exec(line);
    if (sample === null) continue;
    const names = labels.get(sample[1] ?? "") ?? new Set();
    for (const [, name = ""] of (sample[2] ?? "").matchAll(/([a-z_]+)="/g)) names.add(name);
    labels.set(sample[1] ?? "", names);
  }
  return { kinds, labels };
}

/** The metric of a name in an expression: a histogram has three more names. */
function metricOf(name: string, { kinds }: Exported): string | undefined {
  if (kinds.has(name)) return name;
  const base = name.replace(/_(bucket|sum|count)$/, "");
  return kinds.get(base) === "histogram" ? base : undefined;
}

async function scrape(port: number): Promise<string> {
  const response = await fetch(`http://127.0.0.1:${port}/metrics`);
  return await response.text();
}

Deno.test("no dashboard and no alert names a metric or a label that does not exist", async () => {
  await using place = await reserve();
  await using heddle = await Heddle.start(place);
  const answer = await fetch(`${heddle.openaiUrl}/chat/completions`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({
      model: "demo",
      messages: [{ role: "user", content: "hi" }],
      max_tokens: 2,
    }),
  });
  ok(answer.ok, await answer.text());
  const { routerAdmin, controlMetrics, agentMetrics } = layPorts(1, heddle.port);
  const exported = readExported(
    await Promise.all([routerAdmin, controlMetrics, ...agentMetrics].map(scrape)),
  );
  const wrong: string[] = [];
  let found = 0;
  for (const [where, expr] of await expressions()) {
    for (
      const [, name = "", matchers = ""] of expr.matchAll(/(heddle_[a-z0-9_]+)(?:\{([^}]*)\})?/g)
    ) {
      found++;
      if (metricOf(name, exported) === undefined) wrong.push(`${where}: there is no ${name}`);
      const labels = exported.labels.get(name);
      for (const [, label = ""] of matchers.matchAll(/([a-z_]+)\s*(?:=|!=|=~|!~)"/g)) {
        if (labels !== undefined && !labels.has(label)) {
          wrong.push(`${where}: ${name} has no label ${label}`);
        }
      }
    }
  }
  deepEqual(wrong, []);
  ok(found > 40, `only ${found} names were looked at`);
});
