/** `ctl usage`: what was used, by whatever is to be told apart. */
import { buildCommand } from "@stricli/core";
import { UsageBy, type UsageRow, UsageRowSchema } from "@heddle/proto/gen/tenancy";
import { CALL_TIMEOUT_MS } from "../../client.ts";
import { type CtlContext, LIST_ALIASES, LIST_FLAGS, type ListFlags } from "../../command.ts";
import { fieldsOf, toRecord } from "../../record.ts";
import type { Column, Listing } from "../../table.ts";
import { listTenancy } from "./client.ts";
import { durationFlag } from "./key_create.ts";
import { IN_FLAG } from "./scopes.ts";
import { formatSeconds, formatUnits } from "./units.ts";

const BY = {
  key: UsageBy.KEY,
  project: UsageBy.PROJECT,
  organisation: UsageBy.ORGANISATION,
  model: UsageBy.MODEL,
  hour: UsageBy.HOUR,
  day: UsageBy.DAY,
  pool: UsageBy.POOL,
} as const;

type Word = keyof typeof BY;

const SINCE_MS = 7 * 86_400_000;

interface UsageFlags extends ListFlags {
  readonly by: readonly Word[];
  readonly since?: number;
  readonly until?: number;
  readonly in?: string;
  readonly model?: string;
}

export const showUsage = buildCommand({
  docs: { brief: "Show what was used" },
  parameters: {
    flags: {
      ...LIST_FLAGS,
      ...IN_FLAG,
      by: {
        kind: "parsed",
        parse: parseBy,
        default: "project",
        placeholder: "what",
        brief: `What to tell apart: ${Object.keys(BY).join(", ")}; several with commas`,
      },
      since: durationFlag("How far back from now; 7d when not said"),
      until: durationFlag("How far back it ends; now when not said"),
      model: {
        kind: "parsed",
        parse: String,
        optional: true,
        placeholder: "name",
        brief: "Of this model only",
      },
    },
    aliases: LIST_ALIASES,
  },
  async func(this: CtlContext, flags: UsageFlags) {
    const request = {
      by: flags.by.map((word) => BY[word]),
      sinceMs: BigInt(flags.since ?? SINCE_MS),
      untilMs: BigInt(flags.until ?? 0),
      scope: flags.in ?? "",
      model: flags.model ?? "",
    };
    await listTenancy(this, flags, async (client) => {
      const options = { timeoutMs: CALL_TIMEOUT_MS };
      const { rows, truncated } = await client.queryUsage(request, options);
      if (truncated) {
        this.io.err("There is more than is shown: narrow it with --in, --model or --since\n");
      }
      return usageListing(rows, flags.by);
    });
  },
});

/** The words of --by. Throws SyntaxError. */
export function parseBy(text: string): readonly Word[] {
  return text.split(",").map((part) => part.trim()).filter((part) => part !== "").map((part) => {
    const word = Object.keys(BY).find((each) => each === part);
    if (word === undefined) {
      throw new SyntaxError(`want ${Object.keys(BY).join(", ")}, it is "${part}"`);
    }
    return isWord(word) ? word : "project";
  });
}

function isWord(text: string): text is Word {
  return Object.hasOwn(BY, text);
}

const TOLD = {
  key: [
    { title: "KEY", cell: (row) => row.keyId || "none" },
    { title: "NAME", cell: (row) => row.keyName },
  ],
  project: [{ title: "PROJECT", cell: (row) => row.project || row.projectId || "none" }],
  organisation: [{ title: "ORGANISATION", cell: (row) => row.organisation || "none" }],
  model: [{ title: "MODEL", cell: (row) => row.model }],
  hour: [{ title: "HOUR", cell: (row) => formatSeconds(row.fromS) }],
  day: [{ title: "DAY", cell: (row) => formatSeconds(row.fromS) }],
  pool: [{ title: "POOL", cell: (row) => row.pool || "none" }],
} as const satisfies Record<Word, readonly Column<UsageRow>[]>;

/** The table of usage, with a column for each thing that was told apart. */
export function usageListing(rows: readonly UsageRow[], by: readonly Word[]): Listing<UsageRow> {
  const told: readonly Column<UsageRow>[] = by.flatMap((word): readonly Column<UsageRow>[] =>
    TOLD[word]
  );
  return {
    rows,
    empty: "Nothing was used in that time. Look further back with: heddle usage --since 30d",
    record: (row) => toRecord(UsageRowSchema, row),
    fields: fieldsOf(UsageRowSchema),
    columns: [
      ...told,
      { title: "REQUESTS", cell: (row) => String(row.requests) },
      { title: "FAILED", cell: (row) => String(row.failures) },
      { title: "PROMPT", cell: (row) => String(row.promptTokens) },
      { title: "CACHED", cell: (row) => String(row.cachedTokens) },
      { title: "COMPLETION", cell: (row) => String(row.completionTokens) },
      { title: "UNITS", cell: (row) => formatUnits(row.costMicro) },
      { title: "REASONING", cell: (row) => String(row.reasoningTokens), wide: true },
      { title: "ESTIMATED", cell: (row) => String(row.estimated), wide: true },
      { title: "WASTED", cell: (row) => String(row.wastedTokens), wide: true },
    ],
  };
}
