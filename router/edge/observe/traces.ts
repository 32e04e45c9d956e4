/**
 * OpenTelemetry traces: a span for each request and one for each try at a replica, by the semantic
 * conventions for generative AI. The runtime has the exporter built in and switches it on by its own
 * environment (OTEL_DENO=true); without that there is nothing here to cost anything.
 */
import {
  type Attributes,
  type Context,
  context,
  propagation,
  type Span,
  SpanKind,
  SpanStatusCode,
  trace,
} from "@opentelemetry/api";
import type { Endpoint } from "../../core/fleet/endpoint.ts";
import type { RequestHeaders } from "../../core/request/credential.ts";
import type { OutcomeReason } from "../../core/request/outcome.ts";
import type { InferenceRoute, RouteName } from "../../core/request/route.ts";
import type { UsageRecord } from "../../core/request/usage_record.ts";

export interface Traces {
  /** A request has come. The trace is the client's, if it says so. */
  begin(route: InferenceRoute, headers: RequestHeaders): RequestTrace;
}

export interface RequestTrace {
  tryAt(endpoint: Endpoint): TryTrace;
  /** The request is over; once. */
  end(record: UsageRecord, status: number): void;
}

export interface TryTrace {
  /** What tells the engine of which trace it is a part. */
  readonly headers: Readonly<Record<string, string>>;
  end(outcome: OutcomeReason): void;
}

/** The conventions' words for what a route does; other routes go by their own. */
const OPERATIONS: Readonly<Partial<Record<RouteName, string>>> = {
  chat_completions: "chat",
  responses: "chat",
  messages: "chat",
  completions: "text_completion",
};

const tracer = trace.getTracer("heddle-router");

/** Undefined when the runtime records no spans. */
export function startTraces(): Traces | undefined {
  const probe = tracer.startSpan("probe");
  // Never ended, so never exported.
  return probe.isRecording() ? { begin } : undefined;
}

function begin(route: InferenceRoute, headers: RequestHeaders): RequestTrace {
  const operation = OPERATIONS[route.name] ?? route.name;
  const parent = propagation.extract(context.active(), headers);
  const span = tracer.startSpan(operation, {
    kind: SpanKind.SERVER,
    attributes: { "gen_ai.operation.name": operation, "http.route": route.path },
  }, parent);
  const here = trace.setSpan(parent, span);
  return {
    tryAt: (endpoint) => tryAt(here, operation, endpoint),
    end: (record, status) => end(span, operation, { record, status }),
  };
}

function tryAt(parent: Context, operation: string, endpoint: Endpoint): TryTrace {
  const { host, port } = endpoint.origin;
  const span = tracer.startSpan(`${operation} ${endpoint.model}`, {
    kind: SpanKind.CLIENT,
    attributes: {
      "gen_ai.operation.name": operation,
      "gen_ai.request.model": endpoint.model,
      ...(endpoint.engine === "" ? {} : { "gen_ai.provider.name": endpoint.engine }),
      "server.address": host,
      "server.port": port,
      "heddle.replica": endpoint.replicaId,
    },
  }, parent);
  const headers: Record<string, string> = {};
  propagation.inject(trace.setSpan(parent, span), headers);
  return {
    headers,
    end(outcome) {
      if (outcome !== "ok" && outcome !== "client_closed") failed(span, outcome);
      span.end();
    },
  };
}

function end(
  span: Span,
  operation: string,
  { record, status }: { readonly record: UsageRecord; readonly status: number },
): void {
  // Only names that the fleet has: what a client makes up would be a name of its own each time.
  if (record.model !== "") span.updateName(`${operation} ${record.model}`);
  span.setAttributes(attributesOf(record, status));
  // What is the client's own fault is no error of the server's.
  if (status >= 500) failed(span, record.outcome);
  span.end();
}

function attributesOf(record: UsageRecord, status: number): Attributes {
  const { usage, firstContentMs } = record;
  return {
    "http.response.status_code": status,
    "gen_ai.request.model": record.modelAsked,
    ...(record.model === "" ? {} : { "gen_ai.response.model": record.model }),
    ...(usage === undefined ? {} : {
      "gen_ai.usage.input_tokens": usage.promptTokens,
      "gen_ai.usage.output_tokens": usage.completionTokens,
    }),
    ...(firstContentMs === undefined
      ? {}
      : { "gen_ai.server.time_to_first_token": firstContentMs / 1_000 }),
    "heddle.request_id": record.requestId,
    "heddle.outcome": record.outcome,
    "heddle.replica": record.replicaId,
    "heddle.stream": record.stream,
    "heddle.tries": record.tries,
  };
}

function failed(span: Span, outcome: OutcomeReason): void {
  span.setAttribute("error.type", outcome);
  span.setStatus({ code: SpanStatusCode.ERROR });
}
