/** A plausible value for a JSON schema: what a model that obeys a schema might have written. */
import { integerBetween, type Random } from "./random.ts";
import { WORDS } from "./words.ts";

/** Deeper than any tool that people write, and a bound for schemas that refer to themselves. */
const DEPTH_MAX = 8;
const ITEMS_MAX = 3;

type Schema = Readonly<Record<string, unknown>>;

function isSchema(value: unknown): value is Schema {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** Fills a schema. Total: what it does not understand becomes a word. */
export class SchemaFill {
  readonly #root: unknown;
  readonly #random: Random;

  constructor(root: unknown, random: Random) {
    this.#root = root;
    this.#random = random;
  }

  value(): unknown {
    return this.#fill(this.#root, 0);
  }

  #fill(schema: unknown, depth: number): unknown {
    if (!isSchema(schema)) return this.#word();
    if ("const" in schema) return schema["const"];
    if (Array.isArray(schema["enum"]) && schema["enum"].length > 0) {
      return this.#one(schema["enum"]);
    }
    if (typeof schema["$ref"] === "string") {
      return depth >= DEPTH_MAX ? null : this.#fill(this.#resolve(schema["$ref"]), depth + 1);
    }
    for (const key of ["anyOf", "oneOf", "allOf"]) {
      const options = schema[key];
      if (Array.isArray(options) && options.length > 0) return this.#fill(options[0], depth + 1);
    }
    return this.#typed(schema, depth);
  }

  #typed(schema: Schema, depth: number): unknown {
    const declared = schema["type"];
    const type = Array.isArray(declared) ? declared.find((name) => name !== "null") : declared;
    switch (type) {
      case "integer":
        return Math.floor(this.#number(schema));
      case "number":
        return this.#number(schema);
      case "boolean":
        return this.#random() < 0.5;
      case "null":
        return null;
      case "array":
        return this.#array(schema, depth);
      case "object":
        return this.#object(schema, depth);
      case "string":
        return this.#string(schema);
      default:
        return isSchema(schema["properties"]) ? this.#object(schema, depth) : this.#word();
    }
  }

  #object(schema: Schema, depth: number): unknown {
    const properties = schema["properties"];
    if (!isSchema(properties) || depth >= DEPTH_MAX) return {};
    return Object.fromEntries(
      Object.entries(properties).map(([name, member]) => [name, this.#fill(member, depth + 1)]),
    );
  }

  #array(schema: Schema, depth: number): unknown[] {
    const least = typeof schema["minItems"] === "number" ? schema["minItems"] : 1;
    const most = typeof schema["maxItems"] === "number" ? schema["maxItems"] : ITEMS_MAX;
    if (depth >= DEPTH_MAX) return [];
    const length = integerBetween(this.#random, Math.min(least, most), Math.min(most, least + 1));
    return Array.from({ length }, () => this.#fill(schema["items"], depth + 1));
  }

  #number(schema: Schema): number {
    const low = typeof schema["minimum"] === "number" ? schema["minimum"] : 1;
    const high = typeof schema["maximum"] === "number" ? schema["maximum"] : low + 99;
    return integerBetween(this.#random, Math.ceil(low), Math.max(Math.ceil(low), Math.floor(high)));
  }

  #string(schema: Schema): string {
    if (schema["format"] === "date") return "2026-01-15";
    if (schema["format"] === "date-time") return "2026-01-15T12:00:00Z";
    const least = typeof schema["minLength"] === "number" ? schema["minLength"] : 0;
    const most = typeof schema["maxLength"] === "number" ? schema["maxLength"] : Infinity;
    return this.#word().padEnd(Math.min(least, 1024), "a").slice(0, most);
  }

  #word(): string {
    return String(this.#one(WORDS));
  }

  #one(values: readonly unknown[]): unknown {
    return values[Math.floor(this.#random() * values.length)];
  }

  #resolve(reference: string): unknown {
    if (!reference.startsWith("#")) return undefined;
    let at: unknown = this.#root;
    for (const part of reference.slice(1).split("/").filter((name) => name !== "")) {
      if (!isSchema(at)) return undefined;
      at = at[part.replaceAll("~1", "/").replaceAll("~0", "~")];
    }
    return at;
  }
}
