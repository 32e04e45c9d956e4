/** Takes an engine's folder away: one that Heddle installed, and nothing else. */
import { join } from "node:path";
import { readTextIfExists } from "@heddle/common/atomic_file";
import { errorText } from "@heddle/proto/error";
import {
  decodeMark,
  ENGINE_MARK,
  InstallError,
  type InstallReport,
  type InstallRequest,
} from "../../core/install/install_documents.ts";

/** Throws InstallError. What is half removed has another name, so that it counts no more. */
export async function removeEngine(
  { into, engine, version }: InstallRequest,
): Promise<Extract<InstallReport, { kind: "removed" }>> {
  const name = `${engine}-${version}`;
  const folder = join(into, name);
  const aside = join(into, `.removing-${name}`);
  try {
    await Deno.remove(aside, { recursive: true }).catch(() => {});
    const stat = await Deno.lstat(folder).catch(() => undefined);
    if (stat === undefined) return { kind: "removed", folder: name };
    const mark = stat.isDirectory
      ? decodeMark(await readTextIfExists(join(folder, ENGINE_MARK)) ?? "")
      : undefined;
    if (mark?.engine !== engine || mark.version !== version) {
      const text = `Will not remove ${folder}: Heddle did not install it`;
      throw new InstallError("system_error", text);
    }
    await Deno.rename(folder, aside);
    await Deno.remove(aside, { recursive: true });
    return { kind: "removed", folder: name };
  } catch (error) {
    if (error instanceof InstallError) throw error;
    const text = `Cannot remove ${folder}: ${errorText(error)}`;
    throw new InstallError("system_error", text, { cause: error });
  }
}
