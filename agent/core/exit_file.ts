/** The record that heddle-shim leaves of how a process ended. */
import { z } from "zod";
import type { ExitRecord } from "./shard/shard.ts";

const schema = z.object({ version: z.literal(1), code: z.number().int(), signal: z.string() });

/** Undefined when `text` is no record: cut off by a full disk, or of another version. */
export function decodeExitFile(text: string): ExitRecord | undefined {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    return undefined;
  }
  const parsed = schema.safeParse(json);
  if (!parsed.success) return undefined;
  const { code, signal } = parsed.data;
  // A cgroup would know; a group of processes does not.
  return { code, signal, outOfMemory: false };
}
