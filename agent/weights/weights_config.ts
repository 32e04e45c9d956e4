/** The `weights` section of agent.yaml: how a node fetches what its replicas need. */
import { z } from "zod";
import { size } from "@heddle/common/duration";
import { isVariableName } from "../core/shell_env.ts";

const absolutePath = () =>
  z.string().refine((path) => path.startsWith("/") && !/[\s:\\"']/.test(path), {
    error: "want an absolute path without blanks, colons or quotes",
  });

export const weightsSchema = z.strictObject({
  hub: z.url({ protocol: /^https?$/ }).default("https://huggingface.co")
    .describe("The hub that hf:// means, or a mirror of it"),
  token_file: absolutePath().optional()
    .describe("File with the token for the hub; only the program that fetches reads it"),
  ca_file: absolutePath().optional()
    .describe("PEM file of authorities that are trusted besides the usual"),
  connections: z.int().min(1).max(64).default(8)
    .describe("Connections over which one source is fetched"),
  bandwidth: size().optional()
    .describe("Most that one fetch takes in a second, as in 200MiB; left out: no limit"),
  reserve: size().default("10GiB").describe("Room that is left free on the disk"),
  user: z.string().regex(/^[a-z_][a-z0-9_-]{0,31}$/, 'want a user\'s name, "heddle-fetch"')
    .default("heddle-fetch")
    .describe("User that fetches where that is a unit; it writes the folder of weights alone"),
  group: z.string().regex(/^[a-z_][a-z0-9_-]{0,31}$/, 'want a group\'s name, "heddle-engine"')
    .default("heddle-engine")
    .describe("Group that what was fetched belongs to, so that engines can read it"),
  env: z.record(
    z.string().refine(isVariableName, "want a variable's name: letters, digits and _"),
    z.string(),
  ).default({}).describe("Variables for the program that fetches, such as HTTPS_PROXY"),
  program: absolutePath().optional()
    .describe("Path of heddle-fetch; left out: the one of this release"),
});

export type WeightsConfig = z.output<typeof weightsSchema>;
