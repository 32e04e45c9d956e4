/** Every alert has a runbook, and every runbook an alert. */
import { deepEqual, match } from "node:assert/strict";
import { parse } from "yaml";
import { z } from "zod";
import { ROOT } from "../repository.ts";

const rulesSchema = z.object({
  groups: z.array(z.object({
    rules: z.array(z.object({
      alert: z.string(),
      annotations: z.object({ summary: z.string().min(1), runbook_url: z.string() }),
    })),
  })),
});

async function rules() {
  const text = await Deno.readTextFile(`${ROOT}/ansible/roles/monitoring/files/alerts.yml`);
  return rulesSchema.parse(parse(text)).groups.flatMap((group) => group.rules);
}

Deno.test("every alert rule links a runbook of its name, and every runbook has a rule", async () => {
  const linked = (await rules()).map(({ alert, annotations }) => [alert, annotations.runbook_url]);
  const files = await Array.fromAsync(Deno.readDir(`${ROOT}/docs/runbooks`), ({ name }) => name);
  deepEqual(
    linked.toSorted(),
    files.map((name) => [name.replace(/\.md$/, ""), `docs/runbooks/${name}`]).toSorted(),
  );
});

Deno.test("every runbook says what it means, where to look, what to do, and when it is over", async () => {
  for (const { alert, annotations } of await rules()) {
    const text = await Deno.readTextFile(`${ROOT}/${annotations.runbook_url}`);
    match(
      text,
      new RegExp(`^# ${alert}\n\n[A-Z][^]+\n## Look\n[^]+\n## Do\n[^]+\n## Over\n`),
      alert,
    );
  }
});

Deno.test("the table of alerts links each of them", async () => {
  const page = await Deno.readTextFile(`${ROOT}/docs/operating/monitoring.md`);
  const linked = [...page.matchAll(/\(\.\.\/runbooks\/(\w+)\.md\)/g)].map(([, name]) => name);
  deepEqual(linked.toSorted(), (await rules()).map(({ alert }) => alert).toSorted());
});
