/** `deno task build`: writes a release. */
import { VERSION } from "@heddle/common/version";
import { ROOT } from "../repository.ts";
import { runTool, say } from "../say.ts";
import { writeAttachFile } from "./attach_file.ts";
import { tellWholeDeno } from "./denort.ts";
import { BUILD_HELP, parseBuildOptions } from "./options.ts";
import { writeRelease } from "./release.ts";
import { isWholeDeno } from "./runtime.ts";
import { filesBelow } from "./sums.ts";

const BYTES_PER_MB = 1_000_000;

if (import.meta.main) {
  await runTool(async () => {
    const options = parseBuildOptions(Deno.args, { root: ROOT, own: Deno.build.arch });
    if (options.help) return say(BUILD_HELP.trimEnd());
    if (options.form === "attach") {
      const { name, sha256 } = await writeAttachFile(options);
      return say(`${options.out}/${name}\nfor --x64 or --arm64: URL/${name}#sha256=${sha256}`);
    }
    await writeRelease(options);
    const files = filesBelow(options.out);
    const bytes = files.reduce(
      (sum, path) => sum + Deno.statSync(`${options.out}/${path}`).size,
      0,
    );
    say(
      `${options.out}: Heddle ${VERSION} for ${options.arch}, ${files.length} files, ` +
        `${Math.round(bytes / BYTES_PER_MB)} MB`,
    );
    const denort = Deno.env.get("DENORT_BIN");
    if (options.form === "compile" && denort !== undefined && await isWholeDeno(denort)) {
      say(tellWholeDeno(denort));
    }
  });
}
