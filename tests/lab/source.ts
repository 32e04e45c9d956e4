/** This checkout and the Deno that runs it, for nodes on which nothing was installed. */
import { join } from "node:path";
import { z } from "zod";
import { ROOT } from "../../tools/repository.ts";
import { runCommand } from "./command.ts";
import type { Bind } from "./node.ts";

/** Where nodes see the checkout and Deno's cache of modules; they can write to neither. */
export const SOURCE = "/opt/heddle/source";
const CACHE = "/opt/heddle/deno-cache";
export const DENO = "/usr/local/bin/deno";

/** What programs of the checkout need in their environment on a node. */
export const SOURCE_ENV = { HEDDLE_DENO: DENO, DENO_DIR: CACHE, DENO_NO_UPDATE_CHECK: "1" };

/** What a node has to see for it. */
export async function sourceBinds(): Promise<readonly Bind[]> {
  const info = JSON.parse(await runCommand([Deno.execPath(), "info", "--json"]));
  const { denoDir } = z.object({ denoDir: z.string() }).parse(info);
  return [
    { from: ROOT, to: SOURCE },
    { from: denoDir, to: CACHE },
    { from: await Deno.realPath(Deno.execPath()), to: DENO },
  ];
}

/** Arguments that run one of the checkout's test files on a node. */
export function testArguments(file: string): readonly string[] {
  const config = join(SOURCE, "deno.json");
  return [
    DENO,
    "test",
    "--config",
    config,
    "-P=test",
    "--no-check",
    "--frozen",
    join(SOURCE, file),
  ];
}
