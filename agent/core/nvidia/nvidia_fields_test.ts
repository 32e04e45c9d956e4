import { deepEqual, equal } from "node:assert/strict";
import { FIELDS, fieldsToAsk, parseFieldList } from "./nvidia_fields.ts";

const HELP = `List of valid properties to query for the switch "--query-gpu":

"timestamp"
The timestamp of when the query was made in format "YYYY/MM/DD HH:MM:SS.msec".

"uuid" or "gpu_uuid"
This value is the globally unique immutable alphanumeric identifier of the GPU.

"index"
"memory.total"
"name" or "gpu_name"
"clocks_event_reasons.active" or "clocks_throttle_reasons.active"
  "indented.names.are.prose"
`;

Deno.test("parseFieldList() takes names and aliases at the start of a line", () => {
  const listed = parseFieldList(HELP);
  deepEqual([...listed ?? []], [
    ...["timestamp", "uuid", "gpu_uuid", "index", "memory.total", "name", "gpu_name"],
    ...["clocks_event_reasons.active", "clocks_throttle_reasons.active"],
  ]);
});

Deno.test("parseFieldList() knows nothing from a text that is no list", () => {
  equal(parseFieldList(""), undefined);
  equal(parseFieldList("NVIDIA-SMI has failed because it couldn't communicate"), undefined);
});

Deno.test("fieldsToAsk() asks only what the driver lists, and nothing it refused", () => {
  const listed = parseFieldList(HELP);
  deepEqual(fieldsToAsk("identity", listed, new Set()), ["index", "uuid", "memory.total", "name"]);
  deepEqual(fieldsToAsk("health", listed, new Set()), ["uuid", "clocks_throttle_reasons.active"]);
  deepEqual(fieldsToAsk("health", listed, new Set(["clocks_throttle_reasons.active"])), []);
  deepEqual(fieldsToAsk("recent", listed, new Set()), []);
});

Deno.test("fieldsToAsk() asks an unknown driver all but the recent fields", () => {
  deepEqual(fieldsToAsk("identity", undefined, new Set()), FIELDS.identity);
  deepEqual(fieldsToAsk("recent", undefined, new Set()), []);
  equal(FIELDS.identity.at(-1), "name");
});
