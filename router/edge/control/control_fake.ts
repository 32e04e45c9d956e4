/** A control that says what a test makes it say, over the real wire. */
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import {
  type GetOwnUsageRequest,
  type RecordUsageRequest,
  type ReportRequest,
  RouterService,
  type ShareRequest,
  type ShareResponse,
  ShareResponseSchema,
  type WatchRequest,
  type WatchResponse,
  WatchResponseSchema,
} from "@heddle/proto/gen/router";
import { startRpcServer } from "@heddle/common/rpc_server";

/** How a control answers a call for shares. */
export type ShareScript = (
  request: ShareRequest,
) => MessageInitShape<typeof ShareResponseSchema> | Promise<ShareResponse>;

export type WatchMessage = Exclude<MessageInitShape<typeof WatchResponseSchema>, WatchResponse>;

export interface FakeControl {
  readonly url: string;
  readonly port: number;
  /** Sends to every stream that is open, and to later ones first. */
  say(message: WatchMessage): void;
  /** What later streams get first, in place of what was said so far. */
  forget(): void;
  /** Resolves with the next report. */
  nextReport(): Promise<ReportRequest>;
  readonly wakes: string[];
  /** Every batch of usage records that came, also those that were refused. */
  readonly recorded: RecordUsageRequest[];
  /** Answers calls for shares from now on; until then nothing is granted. */
  share(script: ShareScript): void;
  /** While it is set, records are not taken. */
  refuseRecords(error: ConnectError | undefined): void;
  readonly watchers: WatchRequest[];
  close(): Promise<void>;
}

interface Stream {
  readonly queue: WatchMessage[];
  wake: () => void;
}

/** A `standby` refuses every watch, as one that does not lead does. */
export async function startFakeControl(port = 0, standby = false): Promise<FakeControl> {
  const said: WatchMessage[] = [];
  const streams = new Set<Stream>();
  const wakes: string[] = [];
  const watchers: WatchRequest[] = [];
  const tenancy = fakeTenancy();
  let waiting: ((request: ReportRequest) => void)[] = [];
  const server = await startRpcServer({
    listen: { host: "127.0.0.1", port },
    tls: undefined,
    routes: (router) =>
      router.service(RouterService, {
        async *watch(request, context) {
          watchers.push(request);
          if (standby) throw new ConnectError("I stand by", Code.Unavailable);
          const stream: Stream = { queue: [...said], wake: () => {} };
          streams.add(stream);
          try {
            while (!context.signal.aborted) {
              for (const message of stream.queue.splice(0)) {
                yield create(WatchResponseSchema, message);
              }
              await new Promise<void>((resolve) => {
                stream.wake = resolve;
                context.signal.addEventListener("abort", () => resolve(), { once: true });
                if (stream.queue.length > 0) resolve();
              });
            }
          } finally {
            streams.delete(stream);
          }
        },
        report(request) {
          for (const resolve of waiting.splice(0)) resolve(request);
          return { leaseMs: 10_000, others: [] };
        },
        wake({ model }) {
          wakes.push(model);
          return { accepted: true };
        },
        ...tenancy.calls,
      }),
  });
  return {
    url: `http://127.0.0.1:${server.address.port}`,
    port: server.address.port,
    wakes,
    watchers,
    ...tenancy.control,
    say(message) {
      said.push(message);
      for (const stream of streams) {
        stream.queue.push(message);
        stream.wake();
      }
    },
    forget() {
      said.length = 0;
    },
    nextReport: () => new Promise((resolve) => waiting.push(resolve)),
    async close() {
      waiting = [];
      await server.close(0);
    },
  };
}

/** What a control does about shares and records. */
function fakeTenancy() {
  const recorded: RecordUsageRequest[] = [];
  let shareScript: ShareScript = () => ({ routers: 1 });
  let recordError: ConnectError | undefined;
  return {
    calls: {
      share: async (request: ShareRequest) =>
        create(ShareResponseSchema, await shareScript(request)),
      recordUsage(request: RecordUsageRequest) {
        recorded.push(request);
        if (recordError !== undefined) throw recordError;
        return { duplicates: 0 };
      },
      getOwnUsage: ({ keyId }: GetOwnUsageRequest) => ({
        rows: [{ keyId, model: "m", requests: 3n }],
        limits: [],
      }),
    },
    control: {
      recorded,
      share(script: ShareScript) {
        shareScript = script;
      },
      refuseRecords(error: ConnectError | undefined) {
        recordError = error;
      },
    },
  };
}
