import { type Dashboard, quantile } from "./panel.ts";

const MODEL = '{model=~"$model"}';

/** What users of a model notice, and why. */
export const MODEL_DASHBOARD: Dashboard = {
  uid: "heddle-model",
  title: "Heddle: model",
  variables: [{ name: "model", metric: "heddle_router_requests_total", label: "model" }],
  rows: [
    {
      title: "What clients see",
      panels: [
        {
          title: "Requests by how they ended",
          description: "ok, client_closed, or the word that stands in the answer's error.code.",
          unit: "reqps",
          queries: [{
            expr: `sum by (outcome) (rate(heddle_router_requests_total${MODEL}[5m]))`,
            legend: "{{outcome}}",
          }],
        },
        {
          title: "Time to first content",
          description: "Queue, prompt and network together.",
          unit: "s",
          queries: [0.5, 0.9, 0.99].map((part) => ({
            expr: quantile(part, "heddle_router_first_content_seconds", "model", MODEL),
            legend: `{{model}} p${100 * part}`,
          })),
        },
        {
          title: "Time between pieces of content",
          description: "What a reader sees of an engine's decode rate.",
          unit: "s",
          queries: [0.5, 0.99].map((part) => ({
            expr: quantile(part, "heddle_router_content_gap_seconds", "model", MODEL),
            legend: `{{model}} p${100 * part}`,
          })),
        },
        {
          title: "Tokens a second",
          description: "As engines count them.",
          unit: "short",
          queries: [{
            expr: `sum by (model, kind) (rate(heddle_router_tokens_total${MODEL}[5m]))`,
            legend: "{{model}} {{kind}}",
          }],
        },
      ],
    },
    {
      title: "Why",
      panels: [
        {
          title: "Replicas",
          description: "By state. Less than wanted: heddle explain MODEL.",
          unit: "short",
          queries: [{
            expr: `sum by (model, state) (heddle_control_replicas${MODEL})`,
            legend: "{{model}} {{state}}",
          }],
        },
        {
          title: "Wait for room",
          description: "How long requests waited in the router, by band: the 99th percentile.",
          unit: "s",
          queries: [{
            expr: quantile(0.99, "heddle_router_queue_seconds", "model, band", MODEL),
            legend: "{{model}} {{band}}",
          }],
        },
        {
          title: "Saturation",
          description:
            "At 1 the model has what it can take, and requests wait in the order of their bands.",
          unit: "percentunit",
          queries: [{
            expr: `max by (model) (heddle_router_saturation_ratio${MODEL})`,
            legend: "{{model}}",
          }],
        },
        {
          title: "Tries that did not serve",
          description:
            "Another replica served where it could. A rise points to an engine or a node.",
          unit: "reqps",
          queries: [{
            expr: `sum by (model, reason) (rate(heddle_router_failed_tries_total${MODEL}[5m]))`,
            legend: "{{model}}: {{reason}}",
          }],
        },
      ],
    },
  ],
};
