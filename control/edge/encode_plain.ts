/** From the read-only view that core works with back to a message for the wire. */
import { create, type DescMessage, type MessageInitShape } from "@bufbuild/protobuf";
import type { MessageShape } from "@bufbuild/protobuf";
import type { Plain } from "@heddle/proto/plain";

/** A message with the fields of `plain`, sharing what it can. It must not be changed. */
export function encodePlain<S extends DescMessage>(
  schema: S,
  plain: Plain<MessageShape<S>>,
): MessageShape<S> {
  // A Plain has exactly the fields of its message; it is read-only as a type and only there.
  return create(schema, plain as MessageInitShape<S>);
}
