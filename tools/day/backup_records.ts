/** Requests as control's ledger has them, out of a backup of its store (`heddle backup > FILE`). */
import { DatabaseSync } from "node:sqlite";
import { fromBinary } from "@bufbuild/protobuf";
import { errorText, HeddleError } from "@heddle/proto/error";
import { UsageRecordSchema } from "@heddle/proto/gen/tenancy";
import type { RecordedArrival } from "./recorded.ts";

/** How every SQLite file begins. */
const MAGIC = new TextEncoder().encode("SQLite format 3\0");

export function isBackup(bytes: Uint8Array): boolean {
  return MAGIC.every((byte, index) => bytes[index] === byte);
}

/** Those that an engine worked on. Throws `invalid_input` for a file that is no such backup. */
export function recordsOfBackup(file: string): readonly RecordedArrival[] {
  try {
    using database = new DatabaseSync(file, { readOnly: true });
    return database.prepare("SELECT at, record FROM usage_record ORDER BY at").all()
      .flatMap(({ at, record }) => record instanceof Uint8Array ? arrival(Number(at), record) : []);
  } catch (error) {
    throw new HeddleError(
      "invalid_input",
      `Cannot read ${file} as a backup of control's store: ${errorText(error)}`,
      { cause: error },
    );
  }
}

/** `at` is when it ended. */
function arrival(at: number, bytes: Uint8Array): readonly RecordedArrival[] {
  const { usage, durationMs, model } = fromBinary(UsageRecordSchema, bytes);
  if (usage === undefined) return [];
  return [{
    atMs: at - Number(durationMs),
    model,
    promptTokens: Number(usage.promptTokens),
    outputTokens: Number(usage.completionTokens),
  }];
}
