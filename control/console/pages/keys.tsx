/** Who may use what, and what they used. Keys are made and changed on the command line. */
import { useEffect, useState } from "preact/hooks";
import { rpc, wordsOf } from "../call.ts";
import { Notice } from "../parts/notice.tsx";
import { Plot } from "../parts/plot.tsx";
import { clockTime, duration } from "../words.ts";

/** Sums change as requests are counted; nobody watches them by the second. */
const ASK_EVERY_MS = 15_000;

const HOUR_MS = 3_600_000;
const RANGES = [["day", 24], ["week", 168], ["30 days", 720]] as const;
const MICRO = 1_000_000;

/** As JSON has them: numbers of 64 bits are text, and what is empty is left out. */
interface UsageRow {
  readonly project?: string;
  readonly model?: string;
  readonly fromS?: string;
  readonly requests?: string;
  readonly failures?: string;
  readonly promptTokens?: string;
  readonly completionTokens?: string;
  readonly costMicro?: string;
}

interface Limits {
  readonly requestsPerMinute?: string;
  readonly tokensPerMinute?: string;
  readonly concurrentRequests?: number;
  readonly budgetMicro?: string;
}

interface Scope {
  readonly id?: string;
  readonly path?: string;
  readonly limits?: Limits;
  readonly spentMicro?: string;
  readonly refillMs?: string;
  readonly keys?: number;
}

interface Key {
  readonly id?: string;
  readonly settings?: { readonly name?: string; readonly band?: string };
  readonly projectPath?: string;
  readonly secrets?: readonly { readonly prefix?: string }[];
  readonly state?: string;
  readonly lastUsedS?: string;
  readonly limits?: Limits;
}

interface Tenancy {
  readonly hours: readonly UsageRow[];
  readonly rows: readonly UsageRow[];
  readonly scopes: readonly Scope[];
  readonly keys: readonly Key[];
  readonly more: boolean;
}

export function Keys() {
  const [hours, setHours] = useState<number>(RANGES[0][1]);
  const [found, setFound] = useState<Tenancy | string | undefined>();
  useEffect(() => {
    let stale = false;
    const load = () =>
      ask(hours).then(
        (tenancy) => stale || setFound(tenancy),
        (error: unknown) => stale || setFound(wordsOf(error)),
      );
    load();
    const timer = setInterval(load, ASK_EVERY_MS);
    return () => {
      stale = true;
      clearInterval(timer);
    };
  }, [hours]);
  return (
    <>
      <header class="page">
        <h1>Keys and usage</h1>
        <select
          aria-label="How far back"
          value={hours}
          onChange={(event) => setHours(Number(event.currentTarget.value))}
        >
          {RANGES.map(([name, value]) => <option key={name} value={value}>{`last ${name}`}
          </option>)}
        </select>
      </header>
      {found === undefined
        ? <p class="quiet">Asking…</p>
        : typeof found === "string"
        ? <Notice tone="bad">{found}</Notice>
        : <Sections tenancy={found} />}
    </>
  );
}

async function ask(hours: number): Promise<Tenancy> {
  const sinceMs = hours * HOUR_MS;
  const usage = (by: readonly string[]) =>
    rpc<{ readonly rows?: readonly UsageRow[] }>("QueryUsage", { by, sinceMs }, "TenancyService");
  const [hourly, sums, scopes, keys] = await Promise.all([
    usage(["USAGE_BY_HOUR"]),
    usage(["USAGE_BY_PROJECT", "USAGE_BY_MODEL"]),
    rpc<{ readonly scopes?: readonly Scope[] }>("ListScopes", {}, "TenancyService"),
    rpc<{ readonly keys?: readonly Key[]; readonly more?: boolean }>(
      "ListKeys",
      { limit: 200 },
      "TenancyService",
    ),
  ]);
  return {
    hours: [...hourly.rows ?? []].sort((a, b) => Number(a.fromS ?? 0) - Number(b.fromS ?? 0)),
    rows: [...sums.rows ?? []].sort((a, b) => Number(b.costMicro ?? 0) - Number(a.costMicro ?? 0)),
    scopes: scopes.scopes ?? [],
    keys: keys.keys ?? [],
    more: keys.more === true,
  };
}

function Sections({ tenancy }: { readonly tenancy: Tenancy }) {
  const { hours, rows, scopes, keys, more } = tenancy;
  return (
    <>
      {hours.length === 0 ? <p class="quiet">Nothing was used in this time.</p> : (
        <Plot
          title="Requests by hour"
          atS={hours.map(({ fromS = "0" }) => Number(fromS))}
          lines={[
            { label: "requests", colour: "accent", values: numbers(hours, "requests") },
            { label: "failed", colour: "bad", values: numbers(hours, "failures") },
          ]}
        />
      )}
      <Table
        label="Usage"
        head={["Project", "Model", "Requests", "Failed", "Prompt", "Completion", "Units"]}
        rows={rows.map((row) => [
          row.project || "no key",
          row.model ?? "",
          row.requests ?? "0",
          row.failures ?? "0",
          row.promptTokens ?? "0",
          row.completionTokens ?? "0",
          units(row.costMicro),
        ])}
      />
      <h2>Organisations, teams and projects</h2>
      <Table
        label="Scopes"
        head={["Path", "Limits", "Spent", "Keys"]}
        rows={scopes.map(({ path = "", limits, spentMicro, refillMs, keys = 0 }) => [
          path,
          limitWords(limits),
          spentMicro === undefined
            ? ""
            : `${units(spentMicro)} of ${units(limits?.budgetMicro)}, anew in ${
              duration(Number(refillMs ?? 0))
            }`,
          String(keys),
        ])}
      />
      <h2>Keys</h2>
      <Table
        label="Keys"
        head={["Key", "Name", "Project", "State", "Last used", "Limits"]}
        rows={keys.map(({ secrets = [], settings, projectPath = "", state = "", ...key }) => [
          secrets.map(({ prefix = "" }) => `${prefix}…`).join(", "),
          settings?.name ?? "",
          projectPath,
          state,
          key.lastUsedS === undefined ? "never" : clockTime(Number(key.lastUsedS) * 1_000),
          limitWords(key.limits),
        ])}
      />
      {more ? <p class="quiet">There are more: heddle keys lists all.</p> : null}
    </>
  );
}

function Table(
  { label, head, rows }: {
    readonly label: string;
    readonly head: readonly string[];
    readonly rows: readonly (readonly string[])[];
  },
) {
  if (rows.length === 0) return <p class="quiet">None.</p>;
  return (
    <table aria-label={label}>
      <thead>
        <tr>{head.map((each) => <th key={each}>{each}</th>)}</tr>
      </thead>
      <tbody>
        {rows.map((row, index) => (
          <tr key={index}>{row.map((cell, column) => <td key={column}>{cell}</td>)}</tr>
        ))}
      </tbody>
    </table>
  );
}

function numbers(rows: readonly UsageRow[], field: "requests" | "failures"): readonly number[] {
  return rows.map((row) => Number(row[field] ?? 0));
}

function units(micro: string | undefined): string {
  return (Number(micro ?? 0) / MICRO).toLocaleString(undefined, { maximumFractionDigits: 2 });
}

function limitWords(limits: Limits | undefined): string {
  const words = [
    [limits?.requestsPerMinute, "requests/min"],
    [limits?.tokensPerMinute, "tokens/min"],
    [limits?.concurrentRequests, "at a time"],
    [limits?.budgetMicro === undefined ? undefined : units(limits.budgetMicro), "units"],
  ] as const;
  return words.filter(([value]) => value !== undefined).map(([value, unit]) => `${value} ${unit}`)
    .join(", ");
}
