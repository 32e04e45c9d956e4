/**
 * What lies on disk of a shard. A version is additive: it is read by the one before, which ignores
 * what it does not know. A version that this agent does not know is not corrupt: the engine is
 * kept, and nothing of its file is touched.
 */
import { z } from "zod";
import { type Shard, type ShardSpec, shardStateSchema } from "./shard.ts";

const DOCUMENT_VERSION = 1;

const revisionSchema = z.object({ term: z.number(), sequence: z.number() });

const documentSchema = z.object({
  version: z.literal(DOCUMENT_VERSION),
  revision: revisionSchema,
  api_key: z.string(),
  since: z.number(),
  state: shardStateSchema,
  spec: z.unknown(),
});

export type Decoded =
  | { readonly kind: "shard"; readonly shard: Shard }
  /** `spec` is what could be told of it, for the GPUs and ports it holds. */
  | {
    readonly kind: "unknown_version";
    readonly version: number;
    readonly spec: ShardSpec | undefined;
  }
  | { readonly kind: "corrupt"; readonly why: string };

/** The text of a shard's file; `encodeSpec` gives the wire's own JSON. */
export function encodeDocument(shard: Shard, encodeSpec: (spec: ShardSpec) => unknown): string {
  const document: z.input<typeof documentSchema> = {
    version: DOCUMENT_VERSION,
    revision: { ...shard.revision },
    api_key: shard.apiKey,
    since: shard.since,
    state: shard.state,
    spec: encodeSpec(shard.spec),
  };
  return `${JSON.stringify(document, null, 1)}\n`;
}

/** Never throws. `decodeSpec` may: then the file is corrupt. */
export function decodeDocument(
  text: string,
  decodeSpec: (json: unknown) => ShardSpec,
): Decoded {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    return { kind: "corrupt", why: "it is no JSON" };
  }
  const versioned = z.object({ version: z.number(), spec: z.unknown() }).safeParse(json);
  if (!versioned.success) return { kind: "corrupt", why: "it has no version" };
  const { version } = versioned.data;
  const spec = attempt(() => decodeSpec(versioned.data.spec));
  if (version !== DOCUMENT_VERSION) return { kind: "unknown_version", version, spec };
  const parsed = documentSchema.safeParse(json);
  if (!parsed.success) {
    const issue = parsed.error.issues[0];
    return { kind: "corrupt", why: `${issue?.path.join(".") ?? ""}: ${issue?.message ?? ""}` };
  }
  if (spec === undefined) return { kind: "corrupt", why: "spec: it is no shard's" };
  const { revision, api_key: apiKey, since, state } = parsed.data;
  return { kind: "shard", shard: { spec, revision, apiKey, since, state } };
}

function attempt<T>(decode: () => T): T | undefined {
  try {
    return decode();
  } catch {
    return undefined;
  }
}
