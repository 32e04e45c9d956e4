/** The `engine_installs` section of agent.yaml: where engines that control wants are installed. */
import { z } from "zod";
import { isVariableName } from "../core/shell_env.ts";

const absolutePath = () =>
  z.string().refine((path) => path.startsWith("/") && !/[\s:\\"']/.test(path), {
    error: "want an absolute path without blanks, colons or quotes",
  });

export const installsSchema = z.strictObject({
  folder: absolutePath().default("/opt/heddle/engines")
    .describe("Folder of the engines that Heddle installs, one for each version"),
  uv: absolutePath().default("/usr/local/bin/uv").describe("Path of uv, for Python engines"),
  python: z.string().regex(/^3\.\d+$/, 'want a version such as "3.12"').default("3.12")
    .describe("Python of the environments that uv makes"),
  ca_file: absolutePath().optional()
    .describe(
      "PEM file of authorities that are trusted besides the usual, for mirrors; uv trusts these alone",
    ),
  user: z.string().regex(/^[a-z_][a-z0-9_-]{0,31}$/, 'want a user\'s name, "heddle-install"')
    .default("heddle-install")
    .describe("User that installs where that is a unit; it writes the folder of engines alone"),
  env: z.record(
    z.string().refine(isVariableName, "want a variable's name: letters, digits and _"),
    z.string(),
  ).default({}).describe("Variables for the program that installs, such as HTTPS_PROXY"),
  program: absolutePath().optional()
    .describe("Path of heddle-install; left out: the one of this release"),
});

export type InstallsConfig = z.output<typeof installsSchema>;
