/** From bytes to a checked body, with refusals that read like vLLM's. */
import type { z } from "zod";
import { RequestError } from "./request_error.ts";

/** Parses JSON and checks it. @throws RequestError 400 naming the member and what is wrong with it. */
export function parseBody<T extends z.ZodType>(schema: T, text: string): z.infer<T> {
  const result = schema.safeParse(parseJson(text));
  if (result.success) return result.data;
  const issues = result.error.issues.map((issue) => {
    const loc = ["body", ...issue.path.map(String)].map((part) => `'${part}'`).join(", ");
    return `{'type': '${issue.code}', 'loc': (${loc}), 'msg': '${issue.message}'}`;
  });
  const count = `${issues.length} validation error${issues.length === 1 ? "" : "s"}`;
  const param = result.error.issues[0]?.path[0];
  throw new RequestError(
    400,
    `${count}:\n  ${issues.join("\n  ")}`,
    param === undefined ? null : String(param),
  );
}

function parseJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    const detail =
      `{'type': 'json_invalid', 'loc': ('body',), 'msg': 'JSON decode error: ${reason}'}`;
    throw new RequestError(400, `1 validation error:\n  ${detail}`);
  }
}
