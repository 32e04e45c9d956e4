/** Wire messages as plain data for JSON, YAML and CSV. */
import type { DescEnum, DescField, DescMessage, MessageShape } from "@bufbuild/protobuf";

export type PlainRecord = Readonly<Record<string, unknown>>;

/**
 * Field names in snake_case as the API defines them, enums as lower-case words, 64-bit numbers as
 * numbers; unset optional fields are null, so that every record of a list has the same keys.
 */
export function toRecord<Desc extends DescMessage>(
  schema: Desc,
  message: MessageShape<Desc>,
): PlainRecord {
  const values: Readonly<Record<string, unknown>> = { ...message };
  return Object.fromEntries(
    schema.members.flatMap((member) =>
      member.kind === "oneof" ? [] : [[member.name, fieldValue(member, values[member.localName])]]
    ),
  );
}

/** The names of a record's fields, in their order, also where there is no record. */
export function fieldsOf(schema: DescMessage): readonly string[] {
  return schema.members.flatMap((member) => member.kind === "oneof" ? [] : [member.name]);
}

function fieldValue(field: DescField, value: unknown): unknown {
  if (value === undefined) return null;
  switch (field.fieldKind) {
    case "scalar":
      return scalar(value);
    case "enum":
      return enumWord(field.enum, value);
    case "message":
      return nested(field.message, value);
    case "list":
      return Array.isArray(value) ? value.map((item: unknown) => listItem(field, item)) : [];
    case "map":
      return value;
  }
}

function listItem(field: DescField & { fieldKind: "list" }, item: unknown): unknown {
  switch (field.listKind) {
    case "scalar":
      return scalar(item);
    case "enum":
      return enumWord(field.enum, item);
    case "message":
      return nested(field.message, item);
  }
}

function scalar(value: unknown): unknown {
  return typeof value === "bigint" ? Number(value) : value;
}

// What a newer control says keeps its number, so that it can be told apart.
function enumWord(type: DescEnum, value: unknown): string {
  const found = type.values.find((candidate) => candidate.number === value);
  return found === undefined ? `unknown_${String(value)}` : found.localName.toLowerCase();
}

function nested(schema: DescMessage, value: unknown): PlainRecord {
  // A field of message type holds a message of that type; reflection cannot say so in types.
  return toRecord(schema, value as MessageShape<DescMessage>);
}
