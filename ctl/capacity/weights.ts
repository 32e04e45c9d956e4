/** The catalog's text with other weights, and nothing else of it changed: comments and order stay. */
import { type Document, isAlias, isMap, isSeq, parseDocument, type YAMLMap } from "yaml";
import type { ModelCapacity } from "@heddle/proto/gen/capacity";
import { HeddleError } from "@heddle/proto/error";

export interface WeightChange {
  readonly profile: string;
  readonly from: number;
  readonly to: number;
}

/**
 * What measurements ask for; empty when it is so already. Throws `failed_precondition` while a
 * profile was not measured: a weight beside an unknown one says nothing.
 */
export function weightChanges({ model, shape, profiles }: ModelCapacity): readonly WeightChange[] {
  const own = profiles.filter(({ weight }) => weight > 0);
  if (own.length < 2) {
    throw new HeddleError(
      "failed_precondition",
      `${model} has one profile: its weight decides nothing`,
    );
  }
  const unknown = own.find(({ measuredWeight }) => measuredWeight === 0);
  if (unknown !== undefined) {
    const missing = own.find(({ measured }) => measured === undefined) ?? unknown;
    throw new HeddleError(
      "failed_precondition",
      `Cannot set the weights of ${model}: profile ${missing.profile} was never measured for ` +
        `${shape}. heddle bench ${model} --profile ${missing.profile} --shape ${shape}`,
    );
  }
  return own.flatMap(({ profile, weight, measuredWeight }) =>
    weight === measuredWeight ? [] : [{ profile, from: weight, to: measuredWeight }]
  );
}

/** Throws `failed_precondition` for a text in which the model or a profile is not found. */
export function withWeights(
  text: string,
  model: string,
  changes: readonly WeightChange[],
): string {
  const document = parseDocument(text);
  const profiles = named(document, listIn(document, document.contents, "models"), model);
  for (const { profile, to } of changes) {
    named(document, listIn(document, profiles, "profiles"), profile).set("weight", to);
  }
  return document.toString({ lineWidth: 0 });
}

function listIn(document: Document, node: unknown, key: string): readonly unknown[] {
  const list = isMap(node) ? resolved(document, node.get(key, true)) : undefined;
  return isSeq(list) ? list.items : [];
}

function named(document: Document, items: readonly unknown[], name: string): YAMLMap {
  for (const item of items) {
    const map = resolved(document, item);
    if (isMap(map) && map.get("name") === name) return map;
  }
  throw new HeddleError(
    "failed_precondition",
    `Cannot set weights: "${name}" is not in the text of the catalog where it is looked for`,
  );
}

/** What an alias stands for is changed where it is written. */
function resolved(document: Document, node: unknown): unknown {
  return isAlias(node) ? node.resolve(document) : node;
}
