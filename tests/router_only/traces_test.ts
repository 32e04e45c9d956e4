/** A router's traces, as a collector gets them: the exporter is the runtime's own. */
import http from "node:http";
import { deepEqual, equal, ok } from "node:assert/strict";
import { freePorts, startRouter, startSim } from "./processes.ts";

interface Span {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string;
  readonly name: string;
  readonly attributes: Readonly<Record<string, unknown>>;
}

interface Collector extends AsyncDisposable {
  readonly port: number;
  /** Resolves once there are `count` spans of the router's own. */
  spans(count: number): Promise<readonly Span[]>;
}

async function startCollector(): Promise<Collector> {
  const spans: Span[] = [];
  let arrived = Promise.withResolvers<void>();
  const server = http.createServer(async (request, response) => {
    let text = "";
    for await (const part of request) text += part;
    response.writeHead(200, { "content-type": "application/json" }).end("{}");
    if (request.url !== "/v1/traces") return;
    for (const scope of JSON.parse(text).resourceSpans.flatMap(scopesOf)) {
      if (scope.scope.name === "heddle-router") spans.push(...scope.spans.map(spanOf));
    }
    arrived.resolve();
    arrived = Promise.withResolvers();
  });
  await new Promise<void>((resolve) => server.listen({ host: "127.0.0.1", port: 0 }, resolve));
  const bound = server.address();
  return {
    port: typeof bound === "object" ? bound?.port ?? 0 : 0,
    async spans(count) {
      while (spans.length < count) await arrived.promise;
      return spans;
    },
    [Symbol.asyncDispose]() {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(() => resolve()));
    },
  };
}

interface Scope {
  readonly scope: { readonly name: string };
  readonly spans: readonly Wire[];
}

interface Wire {
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string;
  readonly name: string;
  readonly attributes: readonly {
    readonly key: string;
    readonly value: Readonly<Record<string, unknown>>;
  }[];
}

function scopesOf({ scopeSpans }: { readonly scopeSpans: readonly Scope[] }): readonly Scope[] {
  return scopeSpans;
}

function spanOf({ attributes, traceId, spanId, parentSpanId, name }: Wire): Span {
  const values = attributes.map(({ key, value }) => [key, Object.values(value)[0]]);
  return { traceId, spanId, parentSpanId, name, attributes: Object.fromEntries(values) };
}

/** No attribute may hold it, not even of a router that asks for no key. */
const SECRET = "sk-heddle-of-a-client";

Deno.test("a router traces requests under its own permissions, once that is switched on", async () => {
  const state = await Deno.makeTempDir();
  try {
    await using collector = await startCollector();
    const [port = 0] = freePorts(1);
    await using engine = await startSim({ port });
    await using router = await startRouter(state, {
      endpoints: [{
        name: "box",
        url: engine.url,
        models: [{ name: "demo", served_name: "served" }],
      }],
    }, {
      OTEL_DENO: "true",
      OTEL_EXPORTER_OTLP_PROTOCOL: "http/json",
      OTEL_EXPORTER_OTLP_ENDPOINT: `http://127.0.0.1:${collector.port}`,
      OTEL_BSP_SCHEDULE_DELAY: "100",
    });
    const traceId = "0af7651916cd43dd8448eb211c80319c";
    const response = await fetch(`${router.url}/v1/chat/completions`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        authorization: `Bearer ${SECRET}`,
        traceparent: `00-${traceId}-b7ad6b7169203331-01`,
      },
      body: JSON.stringify({
        model: "demo",
        max_tokens: 5,
        messages: [{ role: "user", content: "Hello." }],
      }),
    });
    equal(response.status, 200);
    await response.body?.cancel();
    const spans = await collector.spans(2);
    const request = spans.find(({ attributes }) => "http.route" in attributes);
    const attempt = spans.find(({ attributes }) => "server.port" in attributes);
    ok(request !== undefined && attempt !== undefined);
    deepEqual([request.traceId, attempt.traceId], [traceId, traceId]);
    equal(attempt.parentSpanId, request.spanId);
    deepEqual([request.name, attempt.name], ["chat demo", "chat demo"]);
    equal(request.attributes["gen_ai.operation.name"], "chat");
    equal(request.attributes["gen_ai.response.model"], "demo");
    equal(Number(request.attributes["gen_ai.usage.output_tokens"]), 5);
    equal(request.attributes["heddle.replica"], "box");
    equal(Number(attempt.attributes["server.port"]), port);
    ok(!JSON.stringify(spans).includes(SECRET), "a key is in a trace");
    router.signal("SIGTERM");
    equal(await router.exited, 0);
  } finally {
    await Deno.remove(state, { recursive: true });
  }
});
