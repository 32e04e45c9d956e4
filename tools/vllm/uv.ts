/**
 * `deno task uv`: puts a real uv into the user's cache folder, once, and prints the setting that makes
 * the tests of installing Python engines use it. Needs python3 with venv and pip, and PyPI; says what
 * is missing and exits 1 otherwise.
 */
import { openPython } from "../../tests/python_environment.ts";
import { runTool, say } from "../say.ts";

const UV = "uv==0.13.9";

if (import.meta.main) {
  await runTool(async () => {
    const found = await openPython({ pythons: ["python3"], packages: [UV] });
    if ("why" in found) throw new Error(`Cannot install ${UV}: ${found.why}`);
    say(`HEDDLE_TEST_UV=${found.bin}/uv`);
  });
}
