/** Whether a node has a model's weights, and how large they are. */
import type { Plain } from "@heddle/proto/plain";
import type { Inventory } from "@heddle/proto/gen/types";

/** Size in bytes of a source on a node that reports it as a file or folder; undefined when it does not. */
export function weightsBytes(inventory: Plain<Inventory>, source: string): number | undefined {
  const wanted = trimmed(source);
  const file = inventory.modelFiles.find((each) => trimmed(each.path) === wanted);
  return file === undefined ? undefined : Number(file.sizeBytes);
}

/** A source that must lie on the node already; any other kind can be fetched. */
export function isPath(source: string): boolean {
  return source.startsWith("/");
}

function trimmed(path: string): string {
  return path.length > 1 ? path.replace(/\/+$/, "") : path;
}
