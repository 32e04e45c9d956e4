/** Whether labels that an operator gives make sense. */
import { HeddleError } from "@heddle/proto/error";
import type { NodeView } from "../../core/views.ts";

/** Keys and values stand in tables and in node selectors. */
const KEY = /^[A-Za-z0-9](?:[A-Za-z0-9._/-]{0,61}[A-Za-z0-9])?$/;
const VALUE = /^[A-Za-z0-9._/:@+-]{0,63}$/;

const LABELS_MAX = 64;

/** Throws `invalid_input` for what is no label, and `not_found` for one that is to be removed and is not there. */
export function checkLabels(
  { name, operatorLabels, inventory }: NodeView,
  set: Readonly<Record<string, string>>,
  remove: readonly string[],
): void {
  const fail = (why: string, code: "invalid_input" | "not_found" = "invalid_input") =>
    new HeddleError(code, `Cannot label node "${name}": ${why}`);
  if (Object.keys(set).length + remove.length === 0) throw fail("no label is given");
  for (const [key, value] of Object.entries(set)) {
    if (!KEY.test(key)) {
      throw fail(`"${key}" is no key: letters, digits and . _ / - between them, 63 at most`);
    }
    if (!VALUE.test(value)) {
      throw fail(`"${value}" is no value of ${key}: letters, digits and . _ / : @ + -, 63 at most`);
    }
    if (remove.includes(key)) throw fail(`${key} is to be set and removed`);
  }
  for (const key of remove) {
    if (Object.hasOwn(operatorLabels, key)) continue;
    if (Object.hasOwn(inventory?.labels ?? {}, key)) {
      throw fail(`${key} is a label of its own: change it in its agent.yaml, or set it here`);
    }
    throw fail(`it has no label ${key}`, "not_found");
  }
  if (Object.keys({ ...operatorLabels, ...set }).length > LABELS_MAX) {
    throw fail(`it would have more than ${LABELS_MAX} labels from operators`);
  }
}
