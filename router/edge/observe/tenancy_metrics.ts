/** What keys, limits and the ledger tell Prometheus. No label takes a key or what a client wrote. */
import { Counter, Gauge, type Registry } from "prom-client";
import type { LimitDetail } from "../../core/limits/limit_detail.ts";

export interface TenancyPresent {
  readonly keys: number;
  /** Tokens that requests in flight have reserved. */
  readonly reservedTokens: number;
  /** Organisations, teams, projects and keys whose limits are in use. */
  readonly scopes: number;
  /** Usage records on disk, in bytes. */
  readonly ledgerBytes: number;
  /** Usage records in memory, on their way to the disk. */
  readonly ledgerUnwritten: number;
  /** Usage records that were lost for want of room, since the start. */
  readonly ledgerLost: number;
}

export interface TenancyMetrics {
  /** Tokens of a try that did not serve. */
  wasted(model: string, tokens: number): void;
  /** A limit refused a request. */
  limited(limit: LimitDetail): void;
}

export function registerTenancy(registry: Registry, present: () => TenancyPresent): TenancyMetrics {
  const registers = [registry];
  const gauge = (name: string, help: string, read: (present: TenancyPresent) => number) =>
    new Gauge({
      name: `heddle_router_${name}`,
      help,
      registers,
      collect() {
        this.set(read(present()));
      },
    });
  gauge("keys", "Keys that control knows.", ({ keys }) => keys);
  gauge(
    "reserved_tokens",
    "Tokens that requests in flight have reserved of limits.",
    (p) => p.reservedTokens,
  );
  gauge("limited_scopes", "Scopes whose limits are in use.", ({ scopes }) => scopes);
  gauge("ledger_bytes", "Usage records on disk on their way to control.", (p) => p.ledgerBytes);
  gauge(
    "ledger_unwritten_records",
    "Usage records that are not on disk yet: what a crash would lose.",
    (p) => p.ledgerUnwritten,
  );
  new Counter({
    name: "heddle_router_ledger_lost_records_total",
    help: "Usage records lost because there was no room for them.",
    registers,
    collect() {
      this.reset();
      this.inc(present().ledgerLost);
    },
  });
  const wasted = new Counter({
    name: "heddle_router_wasted_tokens_total",
    help: "Tokens of tries that did not serve, which nobody is charged for.",
    labelNames: ["model"],
    registers,
  });
  const limited = new Counter({
    name: "heddle_router_limited_requests_total",
    help: "Requests refused by a limit, and whose limit it was.",
    labelNames: ["limit", "scope"],
    registers,
  });
  return {
    wasted: (model, tokens) => wasted.inc({ model }, tokens),
    limited: ({ name, scope }) => limited.inc({ limit: name, scope }),
  };
}
