/** Which control ctl talks to: a file with one context for each cluster. */
import { dirname, join } from "node:path";
import { z } from "zod";
import { loadConfig } from "@heddle/common/config_file";
import { type TlsFiles, tlsFilesSchema } from "@heddle/common/mtls_files";
import { HeddleError } from "@heddle/proto/error";

const contextSchema = z.strictObject({
  name: z.string().min(1).describe("what --context takes"),
  url: z.union([z.string(), z.array(z.string()).min(1)]).describe(
    "control's admin API, https://host:port, http only on loopback; or a list of them, one for each control",
  ),
  tls: z.union([
    tlsFilesSchema,
    z.strictObject({ ca_file: tlsFilesSchema.shape.ca_file }),
  ]).optional().describe("the operator's certificate, or with token_file the authority alone"),
  token_file: z.string().optional().describe("file with the operator's token and nothing else"),
  endpoint: z.strictObject({
    url: z.url({ protocol: /^https?$/ }).describe("where clients ask: the address of the routers"),
    key_file: z.string().optional().describe("file with a client's key and nothing else"),
  }).optional().describe("what `doctor` asks for one token"),
});

/** A context as commands act on it. */
export type Context = z.output<typeof contextSchema> & {
  /** Configurations of other fleets that run on this machine, to name where nothing answers. */
  readonly elsewhere?: readonly string[];
};

/** True for TLS settings with a certificate and its key. */
export function isWhole(tls: NonNullable<Context["tls"]>): tls is TlsFiles {
  return "certificate_file" in tls;
}

/** Bits of a file's mode that let its group or everybody read it. */
const OTHERS_READ = 0o044;

/** ctl's configuration file. */
export const configSchema = z.strictObject({
  current: z.string().describe("name of the context that is used when none is given"),
  contexts: z.array(contextSchema).min(1).describe("the controls that this operator may talk to"),
}).superRefine((config, context) => {
  if (!config.contexts.some(({ name }) => name === config.current)) {
    context.addIssue({
      code: "custom",
      path: ["current"],
      message: `no context is named "${config.current}"`,
    });
  }
});

export type CtlConfig = z.output<typeof configSchema>;

/** Where the configuration is looked for, in this order. */
export interface ConfigPlaces {
  /** HEDDLE_CTL_CONFIG. */
  readonly named: string | undefined;
  /** XDG_CONFIG_HOME, or ~/.config. */
  readonly userConfig: string | undefined;
  /** Top of the repository that ctl runs from; undefined for an installed ctl. */
  readonly repository: string | undefined;
  /** State folders of fleets that `deno task up` runs from the same repository. */
  readonly running?: readonly string[];
}

/** What a command line asks for beyond what the configuration says. */
export interface Wanted {
  /** --context */
  readonly context?: string;
  /** --token-file, or HEDDLE_TOKEN_FILE. */
  readonly tokenFile?: string | undefined;
}

/** The context that is wanted, or the current one. Throws `invalid_input` or `not_found`. */
export async function loadContext(places: ConfigPlaces, wanted: Wanted): Promise<Context> {
  const context = await findContext(places, wanted.context);
  return wanted.tokenFile === undefined ? context : withTokenOf(context, wanted.tokenFile);
}

/** Whoever names a token is its holder, and not the one of the context's certificate. */
function withTokenOf(context: Context, file: string): Context {
  const { tls, ...rest } = context;
  return {
    ...rest,
    token_file: file,
    ...(tls === undefined ? {} : { tls: { ca_file: tls.ca_file } }),
  };
}

/** Something to say about a file that others than its owner can read; undefined when there is none. */
export async function readableByOthers(file: string): Promise<string | undefined> {
  // Nobody can read what is not there, and reading it will say so.
  const mode = await Deno.stat(file).then((info) => info.mode, () => null);
  if (mode === null || (mode & OTHERS_READ) === 0) return undefined;
  const shown = (mode & 0o777).toString(8).padStart(4, "0");
  return `${file} can be read by others (mode ${shown}): chmod 600 ${file}`;
}

async function findContext(places: ConfigPlaces, wanted: string | undefined): Promise<Context> {
  const { file, config } = await findConfig(places);
  const name = wanted ?? config.current;
  const found = config.contexts.find((context) => context.name === name);
  if (found !== undefined) {
    await demandReadable(found, { file, places });
    return { ...found, elsewhere: configsOf(places).filter((each) => each !== file) };
  }
  const names = config.contexts.map((context) => context.name).join(", ");
  throw new HeddleError("not_found", `No context "${name}" in ${file}: it has ${names}`);
}

function configsOf({ running = [] }: ConfigPlaces): string[] {
  return running.map((state) => join(state, "ctl", "config.yaml"));
}

/** What to do about fleets that run here and that this configuration does not name; empty without any. */
export function elsewhereText(configs: readonly string[] = []): string {
  if (configs.length === 0) return "";
  const each = configs.map((file) => `\n  export HEDDLE_CTL_CONFIG=${file}`).join("");
  return `Running on this machine, each with a configuration of its own:${each}`;
}

/** A context may name any file; the launcher lets few be read. Throws `permission_denied`. */
async function demandReadable(
  context: Context,
  { file, places }: { readonly file: string; readonly places: ConfigPlaces },
): Promise<void> {
  const { tls, token_file: token } = context;
  const files = [...Object.values(tls ?? {}), ...(token === undefined ? [] : [token])];
  for (const path of files) {
    const { state } = await Deno.permissions.query({ name: "read", path });
    if (state === "granted") continue;
    const folder = dirname(file);
    const also = places.named === undefined ? " and in /etc/heddle/ctl" : "";
    throw new HeddleError(
      "permission_denied",
      `Cannot use context "${context.name}": it names ${path}, and heddle may read only what lies ` +
        `in ${folder}${also}. Copy it there, and name the copy in ${file}`,
    );
  }
}

/** The file that counts. Throws `not_found` when there is none, `invalid_input` when it is wrong. */
export async function findConfig(
  places: ConfigPlaces,
): Promise<{ readonly file: string; readonly config: CtlConfig }> {
  const candidates = candidateFiles(places);
  for (const file of candidates) {
    if (file !== places.named && !await exists(file)) continue;
    return { file, config: await loadConfig(configSchema, file) };
  }
  const elsewhere = elsewhereText(configsOf(places));
  throw new HeddleError(
    "not_found",
    `Nothing says which control to talk to: looked for ${candidates.join(", ")}. ` +
      "`deno task up` makes one for this machine; HEDDLE_CTL_CONFIG names another" +
      (elsewhere === "" ? "" : `. ${elsewhere}`),
  );
}

function candidateFiles(places: ConfigPlaces): string[] {
  if (places.named !== undefined) return [places.named];
  return [
    ...(places.userConfig === undefined ? [] : [join(places.userConfig, "heddle", "config.yaml")]),
    "/etc/heddle/ctl/config.yaml",
    ...(places.repository === undefined
      ? []
      : [join(places.repository, ".heddle", "up", "ctl", "config.yaml")]),
  ];
}

async function exists(file: string): Promise<boolean> {
  try {
    return (await Deno.stat(file)).isFile;
  } catch {
    // Not there, or outside of what ctl may read: either way it is not the file to use.
    return false;
  }
}
