/** Control's records as they lie in its store, when it does not run. */
import { DatabaseSync } from "node:sqlite";
import { join } from "node:path";
import { fromBinary } from "@bufbuild/protobuf";
import { type UsageRecord, UsageRecordSchema } from "@heddle/proto/gen/tenancy";

export function recordsOf(controlState: string): UsageRecord[] {
  const database = new DatabaseSync(join(controlState, "control.db"), { readOnly: true });
  try {
    return database.prepare("SELECT record FROM usage_record").all()
      .flatMap(({ record }) => record instanceof Uint8Array ? [record] : [])
      .map((bytes) => fromBinary(UsageRecordSchema, bytes));
  } finally {
    database.close();
  }
}
