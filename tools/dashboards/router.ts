import { type Dashboard, quantile } from "./panel.ts";

/** The routers themselves. */
export const ROUTER: Dashboard = {
  uid: "heddle-router",
  title: "Heddle: routers",
  variables: [],
  rows: [
    {
      title: "Traffic",
      panels: [
        {
          title: "Requests in flight",
          description: "By router. Uneven is a matter of what stands in front of them.",
          unit: "short",
          queries: [{ expr: "heddle_router_requests_in_flight", legend: "{{instance}}" }],
        },
        {
          title: "Requests that wait",
          description: "For room, by band, and for models that sleep.",
          unit: "short",
          queries: [
            { expr: "sum by (band) (heddle_router_queued_requests)", legend: "{{band}}" },
            { expr: "sum(heddle_router_requests_waiting)", legend: "held for sleeping models" },
          ],
        },
        {
          title: "Time of each stage",
          description:
            "The 99th percentile. forward is the engine's; the rest is the router's own.",
          unit: "s",
          queries: [{
            expr: quantile(0.99, "heddle_router_stage_seconds", "stage"),
            legend: "{{stage}}",
          }],
        },
        {
          title: "Refused by limits",
          description: "Keys that are at one of their limits, by which.",
          unit: "reqps",
          queries: [{
            expr: "sum by (limit) (rate(heddle_router_limited_requests_total[5m]))",
            legend: "{{limit}}",
          }],
        },
      ],
    },
    {
      title: "Engines as routers see them",
      panels: [
        {
          title: "Breakers that are not closed",
          description:
            "A replica that failed is left alone for a while, then tried with one request.",
          unit: "short",
          queries: [{
            expr: 'max by (replica) (heddle_router_breaker_state{state!="closed"})',
            legend: "{{replica}}",
          }],
        },
        {
          title: "Requests at replicas",
          description: "What this router has there.",
          unit: "short",
          queries: [{
            expr: "sum by (replica) (heddle_router_replica_in_flight)",
            legend: "{{replica}}",
          }],
        },
        {
          title: "KV cache in use",
          description: "As engines say. Near 1 they preempt requests or let them wait.",
          unit: "percentunit",
          queries: [{
            expr: "max by (replica, engine) (heddle_engine_kv_cache_usage_ratio)",
            legend: "{{replica}} ({{engine}})",
          }],
        },
        {
          title: "Waiting in engines",
          description: "The router keeps requests to itself before it comes to this.",
          unit: "short",
          queries: [{
            expr: "max by (replica, engine) (heddle_engine_requests_waiting)",
            legend: "{{replica}} ({{engine}})",
          }],
        },
      ],
    },
    {
      title: "Health",
      panels: [
        {
          title: "Age of the table",
          description: "Since control last confirmed it. Rising: control is away; serving goes on.",
          unit: "s",
          queries: [{ expr: "heddle_router_snapshot_age_seconds", legend: "{{instance}}" }],
        },
        {
          title: "Event loop",
          description:
            "How late timers fire, 99th percentile. Above 50 ms a router has too much to do.",
          unit: "s",
          queries: [{
            expr: quantile(0.99, "heddle_event_loop_lag_seconds", "job, instance"),
            legend: "{{job}} {{instance}}",
          }],
        },
        {
          title: "Memory",
          description: "Resident, of every program.",
          unit: "bytes",
          queries: [{
            expr: 'heddle_process_memory_bytes{kind="rss"}',
            legend: "{{job}} {{instance}}",
          }],
        },
        {
          title: "Connections to engines",
          description: "Busy ones are requests in flight; idle ones are kept for the next.",
          unit: "short",
          queries: [{
            expr: "sum by (state) (heddle_router_engine_connections)",
            legend: "{{state}}",
          }],
        },
      ],
    },
  ],
};
