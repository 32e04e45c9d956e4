/** A shape by what an operator calls it: a name, or a file. */
import { errorText, HeddleError } from "@heddle/proto/error";
import { basename } from "node:path";
import { namedShape, type Shape, SHAPES } from "./shape.ts";
import { shapeOfLines } from "./shape_file.ts";

/** Throws `invalid_input`. */
export async function shapeNamed(name: string): Promise<Shape> {
  const named = namedShape(name);
  if (named !== undefined) return named;
  try {
    return shapeOfLines(name, await Deno.readTextFile(name));
  } catch (error) {
    if (error instanceof HeddleError) throw error;
    throw new HeddleError(
      "invalid_input",
      `${name} is neither one of ${SHAPES.join(", ")} nor a file that can be read: ${
        errorText(error)
      }`,
    );
  }
}

/** What measurements of it are stored under: a file's path says where it lies on one machine. */
export function shapeName(name: string): string {
  return basename(name);
}
