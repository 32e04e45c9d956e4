/**
 * Who may use what, as it is stored: JSON under a kind and an id. What is not there was never said.
 * Newer controls may add members; these are kept out of sight, never refused.
 */
import { z } from "zod";

const names = z.array(z.string());

const scopeSchema = z.object({
  kind: z.enum(["organisation", "team", "project"]),
  name: z.string(),
  /** Id of what it is in; empty for an organisation. */
  parent: z.string(),
  /** Of projects, for keys that have none; empty for the models' own. */
  routingProfile: z.string(),
  /** The same; scopes that were stored before there was one have none. */
  band: z.string().default(""),
  createdAt: z.number(),
  createdBy: z.string(),
  deletedAt: z.number().optional(),
});

const secretSchema = z.object({
  /** Hex. */
  sha256: z.string(),
  shown: z.string(),
  expiresAt: z.number().optional(),
});

const keySchema = z.object({
  project: z.string(),
  name: z.string(),
  models: names.optional(),
  paths: names.optional(),
  addresses: names.optional(),
  band: z.string(),
  routingProfile: z.string(),
  mayExplain: z.boolean(),
  /** The newest last. */
  secrets: z.array(secretSchema),
  createdAt: z.number(),
  createdBy: z.string(),
  revokedAt: z.number().optional(),
});

const limitsSchema = z.object({
  requestsPerMinute: z.number().optional(),
  tokensPerMinute: z.number().optional(),
  concurrentRequests: z.number().optional(),
  /** Millionths of a unit. */
  budgetMicro: z.number().optional(),
  budgetPeriod: z.enum(["day", "month"]).optional(),
  models: names.optional(),
});

const priceSchema = z.discriminatedUnion("basis", [
  z.object({
    basis: z.literal("tokens"),
    promptMicro: z.number(),
    cachedMicro: z.number(),
    completionMicro: z.number(),
  }),
  z.object({ basis: z.literal("gpu_second"), micro: z.number() }),
  z.object({ basis: z.literal("request"), micro: z.number() }),
]);

/** What is stored under each kind. */
export const STORED_SCHEMAS = {
  scope: scopeSchema,
  key: keySchema,
  limits: limitsSchema,
  price: priceSchema,
} as const;

export type StoredScope = Readonly<z.output<typeof scopeSchema>>;
export type StoredSecret = Readonly<z.output<typeof secretSchema>>;
export type StoredKey = Readonly<z.output<typeof keySchema>>;
export type StoredLimits = Readonly<z.output<typeof limitsSchema>>;
export type StoredPrice = Readonly<z.output<typeof priceSchema>>;
export type Period = "day" | "month";

/** One change, as it is stored; without a value it removes what was there. */
export type TenancyRecord =
  | { readonly kind: "scope"; readonly id: string; readonly value?: StoredScope }
  | { readonly kind: "key"; readonly id: string; readonly value?: StoredKey }
  /** Of a scope or a key. */
  | { readonly kind: "limits"; readonly id: string; readonly value?: StoredLimits }
  /** Of the model of that name. */
  | { readonly kind: "price"; readonly id: string; readonly value?: StoredPrice };

/** One as it is stored: JSON, to be checked against its schema. */
export interface TenancyRow {
  readonly kind: string;
  readonly id: string;
  readonly value: string;
}

/** Everything of it. Changed in place, by its one owner. */
export interface Tenancy {
  readonly scopes: Map<string, StoredScope>;
  readonly keys: Map<string, StoredKey>;
  readonly limits: Map<string, StoredLimits>;
  readonly prices: Map<string, StoredPrice>;
}

export function emptyTenancy(): Tenancy {
  return { scopes: new Map(), keys: new Map(), limits: new Map(), prices: new Map() };
}

/** Puts one record in its place. */
export function applyRecord(tenancy: Tenancy, record: TenancyRecord): void {
  switch (record.kind) {
    case "scope":
      return put(tenancy.scopes, record.id, record.value);
    case "key":
      return put(tenancy.keys, record.id, record.value);
    case "limits":
      return put(tenancy.limits, record.id, record.value);
    case "price":
      return put(tenancy.prices, record.id, record.value);
  }
}

function put<V>(map: Map<string, V>, id: string, value: V | undefined): void {
  if (value === undefined) map.delete(id);
  else map.set(id, value);
}
