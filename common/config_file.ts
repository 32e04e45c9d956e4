/**
 * Reads YAML documents against a zod schema. Every complaint names the file, the line, the column
 * and the path in the document, and all complaints come at once.
 */
import { isMap, isNode, isPair, isScalar, LineCounter, parseDocument } from "yaml";
import type { Document } from "yaml";
import type { z } from "zod";
import { errorText, HeddleError } from "@heddle/proto/error";

/** One thing that is wrong with a document. `line` and `column` count from 1. */
export interface Complaint {
  readonly file: string;
  readonly line: number;
  readonly column: number;
  /** For example "models[2].profiles[0].tp"; empty for the document itself. */
  readonly path: string;
  readonly message: string;
}

export type Parsed<T> =
  | { readonly kind: "ok"; readonly value: T }
  | { readonly kind: "invalid"; readonly complaints: readonly Complaint[] };

/** Parses `text` as one YAML document and validates it. Pure; `file` is only for the complaints. */
export function parseConfig<S extends z.ZodType>(
  schema: S,
  text: string,
  file: string,
): Parsed<z.output<S>> {
  const lines = new LineCounter();
  const document = parseDocument(text, { lineCounter: lines, prettyErrors: false });
  if (document.errors.length > 0) {
    return {
      kind: "invalid",
      complaints: document.errors.map((error) => {
        const { line, col } = lines.linePos(error.pos[0]);
        return { file, line: Math.max(line, 1), column: col, path: "", message: error.message };
      }),
    };
  }
  const result = schema.safeParse(toPlain(document));
  if (result.success) return { kind: "ok", value: result.data };
  return {
    kind: "invalid",
    complaints: result.error.issues.flatMap((issue) => complaintsOf(issue, document, lines, file)),
  };
}

/** Reads and parses a file. Throws `invalid_input` with every complaint, a line each. */
export async function loadConfig<S extends z.ZodType>(
  schema: S,
  file: string,
): Promise<z.output<S>> {
  let text: string;
  try {
    text = await Deno.readTextFile(file);
  } catch (error) {
    throw new HeddleError("invalid_input", `Cannot read ${file}: ${whyUnreadable(error)}`, {
      cause: error,
    });
  }
  const parsed = parseConfig(schema, text, file);
  if (parsed.kind === "ok") return parsed.value;
  throw new HeddleError("invalid_input", formatComplaints(parsed.complaints));
}

// Deno would advise a flag that no program of ours has.
function whyUnreadable(error: unknown): string {
  if (!(error instanceof Deno.errors.NotCapable)) return errorText(error);
  return "this program's permissions do not include it; /etc/heddle is among them, and " +
    "docs/operating/packaging.md lists the variables that add folders";
}

/** "control.yaml:3:5: listen.port: expected number, received string", a line each. */
export function formatComplaints(complaints: readonly Complaint[]): string {
  return complaints.map((complaint) => {
    const path = complaint.path === "" ? "" : `${complaint.path}: `;
    return `${complaint.file}:${complaint.line}:${complaint.column}: ${path}${complaint.message}`;
  }).join("\n");
}

// An empty file means "all defaults", which is an empty map and not null.
function toPlain(document: Document): unknown {
  return document.toJS({ maxAliasCount: 100 }) ?? {};
}

type Path = readonly (string | number)[];

function complaintsOf(
  issue: z.core.$ZodIssue,
  document: Document,
  lines: LineCounter,
  file: string,
): Complaint[] {
  const path = issue.path.map((part) => typeof part === "symbol" ? String(part) : part);
  if (issue.code === "unrecognized_keys") {
    return issue.keys.map((key) => ({
      file,
      ...positionOf(document, lines, [...path, key], "key"),
      path: formatPath([...path, key]),
      message: "unknown key",
    }));
  }
  return [{
    file,
    ...positionOf(document, lines, path, "value"),
    path: formatPath(path),
    message: wordsOf(issue.message),
  }];
}

function wordsOf(message: string): string {
  return message.replace(/^Invalid input: /, "").replace(/^Invalid input$/, "invalid value");
}

function formatPath(path: Path): string {
  return path.reduce<string>(
    (text, part) =>
      typeof part === "number" ? `${text}[${part}]` : text === "" ? part : `${text}.${part}`,
    "",
  );
}

// What is missing has no place of its own: then the nearest thing around it is shown.
function positionOf(
  document: Document,
  lines: LineCounter,
  path: Path,
  part: "key" | "value",
): { line: number; column: number } {
  for (let depth = path.length; depth >= 0; depth--) {
    const offset = offsetOf(document, path.slice(0, depth), depth === path.length ? part : "value");
    if (offset !== undefined) {
      const { line, col } = lines.linePos(offset);
      if (line > 0) return { line, column: col };
    }
  }
  return { line: 1, column: 1 };
}

function offsetOf(document: Document, path: Path, part: "key" | "value"): number | undefined {
  if (part === "key") {
    const parent = path.length === 1 ? document.contents : document.getIn(path.slice(0, -1), true);
    if (!isMap(parent)) return undefined;
    const pair = parent.items.find((item) =>
      isPair(item) && isScalar(item.key) && item.key.value === path.at(-1)
    );
    return isNode(pair?.key) ? pair.key.range?.[0] : undefined;
  }
  const node = path.length === 0 ? document.contents : document.getIn(path, true);
  return isNode(node) ? node.range?.[0] : undefined;
}
