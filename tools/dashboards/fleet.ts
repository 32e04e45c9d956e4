import { type Dashboard, quantileOfAll } from "./panel.ts";

/** Machines, cards and adapters, and what control makes of them. */
export const FLEET: Dashboard = {
  uid: "heddle-fleet",
  title: "Heddle: fleet",
  variables: [],
  rows: [
    {
      title: "Control",
      panels: [
        {
          title: "Leading",
          description:
            "One control leads. At 0 nothing is started, moved or scaled; what runs serves on.",
          unit: "none",
          stat: true,
          queries: [{ expr: "sum(heddle_control_leading)", legend: "leading" }],
        },
        {
          title: "Settled",
          description:
            "0 for up to a minute after control starts, while it waits for the nodes it knows.",
          unit: "none",
          stat: true,
          queries: [{ expr: "max(heddle_control_settled)", legend: "settled" }],
        },
        {
          title: "Store does not answer",
          description: "Above 0 control decides nothing. Look at the database.",
          unit: "none",
          stat: true,
          queries: [{ expr: "sum(heddle_control_store_away)", legend: "away" }],
        },
        {
          title: "Time of a pass",
          description:
            "How long control takes to decide. Above a second it is too slow for its fleet.",
          unit: "s",
          queries: [
            {
              expr: quantileOfAll(0.5, "heddle_control_reconcile_duration_seconds"),
              legend: "p50",
            },
            {
              expr: quantileOfAll(0.99, "heddle_control_reconcile_duration_seconds"),
              legend: "p99",
            },
          ],
        },
      ],
    },
    {
      title: "Nodes and replicas",
      panels: [
        {
          title: "Nodes by state",
          description:
            "unreachable: silent for 15 s, still serving if it can. lost: silent for a minute.",
          unit: "short",
          queries: [{ expr: "sum by (state) (heddle_control_nodes)", legend: "{{state}}" }],
        },
        {
          title: "Replicas by state",
          description:
            "failed ones come back by themselves with a growing delay: heddle explain MODEL.",
          unit: "short",
          queries: [{ expr: "sum by (state) (heddle_control_replicas)", legend: "{{state}}" }],
        },
        {
          title: "Ready and not well",
          description:
            "suspected: may hang, still asked. degraded: asked only where no other is left; what hangs is ended after 11 min.",
          unit: "short",
          queries: [{
            expr: "sum by (model, state) (heddle_control_replicas_unwell) > 0",
            legend: "{{model}}: {{state}}",
          }],
        },
        {
          title: "Engines that failed",
          description: "By why. The words are those of heddle replicas.",
          unit: "short",
          queries: [{
            expr: "sum by (engine, reason) (increase(heddle_agent_shard_failures_total[15m]))",
            legend: "{{engine}}: {{reason}}",
          }],
        },
        {
          title: "Problems of nodes",
          description: "Parts that are not used, by why: heddle nodes says where and what to do.",
          unit: "short",
          queries: [{ expr: "sum by (reason) (heddle_agent_problems)", legend: "{{reason}}" }],
        },
      ],
    },
    {
      title: "GPUs and adapters",
      panels: [
        {
          title: "GPUs that may be used",
          description: "By class, beside all there are.",
          unit: "short",
          queries: [
            { expr: "sum by (class) (heddle_agent_gpu_usable)", legend: "{{class}} usable" },
            { expr: "count by (class) (heddle_agent_gpu_usable)", legend: "{{class}}" },
          ],
        },
        {
          title: "GPU memory in use",
          description:
            "Engines take what they are given when they start; steps are starts and ends.",
          unit: "percentunit",
          queries: [{
            expr: "sum by (class) (heddle_agent_gpu_memory_used_bytes) / " +
              "sum by (class) (heddle_agent_gpu_memory_total_bytes)",
            legend: "{{class}}",
          }],
        },
        {
          title: "How busy GPUs are",
          description: "High is normal under load; high without requests is an engine that hangs.",
          unit: "percentunit",
          queries: [{
            expr: "avg by (instance) (heddle_agent_gpu_utilization_ratio)",
            legend: "{{instance}}",
          }],
        },
        {
          title: "Temperature of the hottest GPU",
          description: "Cards slow down at 85 to 95 °C.",
          unit: "celsius",
          queries: [{
            expr: "max by (instance) (heddle_agent_gpu_temperature_celsius)",
            legend: "{{instance}}",
          }],
        },
        {
          title: "Ports whose link is down",
          description:
            "A fabric that lost some of its ports is degraded, one that lost all is not used.",
          unit: "short",
          queries: [{
            expr: 'sum by (fabric, instance) (1 - heddle_agent_hca_active{fabric!=""})',
            legend: "{{fabric}} on {{instance}}",
          }],
        },
        {
          title: "Days that certificates hold on",
          description:
            "Programs renew theirs at two thirds; a line that goes on falling is one that cannot.",
          unit: "short",
          queries: [{
            expr: "(heddle_certificate_expiry_timestamp_seconds - time()) / 86400",
            legend: "{{job}} {{instance}}",
          }],
        },
      ],
    },
  ],
};
