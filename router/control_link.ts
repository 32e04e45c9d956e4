/**
 * Everything that ties this router to control: the table that control says, its copy on disk, how
 * old it is, and the reports back.
 */
import type { Transport } from "@connectrpc/connect";
import type { DenyListCopy } from "@heddle/common/deny_list";
import { logger } from "@heddle/common/log";
import { keepRenewed } from "@heddle/common/renewal";
import { delay, spawnTask } from "@heddle/common/task";
import type { UsageRecord } from "./core/request/usage_record.ts";
import { ControlClient, type ControlRpc, type TenancySink } from "./edge/control/control_client.ts";
import { type ReplicaReport, reportLoop } from "./edge/control/reporter.ts";
import { SnapshotFile } from "./edge/control/snapshot_file.ts";
import type { Settings } from "./settings/settings.ts";
import type { Endpoints } from "./endpoints.ts";
import { ModelLoads } from "./model_loads.ts";
import type { Queue } from "./queue.ts";

/** How often the age is judged, and the file's date renewed while control confirms what it holds. */
const AGE_CHECK_MS = 10_000;
const CONFIRM_SAVE_MS = 60_000;

export interface ControlLink {
  /** Asks control to start a sleeping model. */
  wake(model: string): void;
  connected(): boolean;
  /** The control that is being watched; undefined while none is. */
  readonly rpc: () => ControlRpc | undefined;
  /** Time since control last confirmed the table; undefined when there is none yet. */
  readonly ageMs: () => number | undefined;
  tooOld(): boolean;
  /** Counts a request for the next report. */
  count(record: UsageRecord): void;
  /** Ends the streams and writes what is still to be written. */
  stop(): Promise<void>;
}

export interface ControlLinkOptions {
  readonly settings: Settings;
  readonly control: NonNullable<Settings["control"]>;
  readonly identity: { readonly name: string; readonly instance: string };
  readonly endpoints: Endpoints;
  readonly tenancy: TenancySink;
  readonly queue: () => Queue;
  /** Kept current, where somebody asks it. */
  readonly denyList: DenyListCopy | undefined;
}

/** Loads the last snapshot and starts following control. */
export async function startControlLink(options: ControlLinkOptions): Promise<ControlLink> {
  const { settings, control, endpoints, identity, tenancy } = options;
  const file = new SnapshotFile(settings.stateDirectory);
  const loads = new ModelLoads((model) => endpoints.watched.models.get(model)?.slo);
  const stop = new AbortController();
  let confirmedAtMs: number | undefined;
  const saved = await file.load();
  if (saved !== undefined) {
    endpoints.apply(saved.update);
    confirmedAtMs = saved.confirmedAtMs;
  }
  const save = () =>
    file.save(() => ({ table: endpoints.watched, confirmedAtMs: confirmedAtMs ?? Date.now() }));
  const client = new ControlClient({
    ...identity,
    ...control,
    routing: endpoints,
    tenancy,
    onConfirmed() {
      confirmedAtMs = Date.now();
      save();
    },
    beside: (transport, signal) => stayCurrent(options, transport, signal),
  });
  const connected = () => client.rpc !== undefined;
  const ageMs = () =>
    connected() ? 0 : confirmedAtMs === undefined ? undefined : Date.now() - confirmedAtMs;
  const tooOld = () => (ageMs() ?? 0) > settings.snapshotAgeWarningMs;
  spawnTask("watch", () => client.run(stop.signal), stop.signal);
  spawnTask("report", () =>
    reportLoop({
      ...identity,
      intervalMs: settings.reportIntervalMs,
      rpc: () => client.rpc,
      source: {
        applied: () => endpoints.watched.revision,
        replicas: () => replicaReports(endpoints),
        models: () => loads.since(options.queue()),
        arrived(models, others) {
          loads.reported(models);
          endpoints.setOthers(others);
        },
      },
    }, stop.signal), stop.signal);
  spawnTask("snapshot age", () => watchAge(tooOld, ageMs, stop.signal), stop.signal);
  spawnTask("snapshot date", async () => {
    while (!stop.signal.aborted) {
      await delay(CONFIRM_SAVE_MS, stop.signal);
      if (stop.signal.aborted || !connected()) continue;
      confirmedAtMs = Date.now();
      save();
    }
  }, stop.signal);
  return {
    wake: (model) => spawnTask("wake", () => client.wake(model, performance.now())),
    connected,
    rpc: () => client.rpc,
    ageMs,
    tooOld,
    count: (record) => loads.count(record),
    async stop() {
      if (connected()) confirmedAtMs = Date.now();
      stop.abort();
      await file.close();
    },
  };
}

/** What control says of certificates. */
async function stayCurrent(
  { control, denyList }: ControlLinkOptions,
  transport: Transport,
  signal: AbortSignal,
): Promise<void> {
  const { tls } = control;
  await Promise.all([
    tls === undefined ? undefined : keepRenewed({ files: tls, transport }, signal),
    denyList?.follow(transport, signal),
  ]);
}

/** Replicas with nothing of this router need no word. */
function replicaReports(endpoints: Endpoints): readonly ReplicaReport[] {
  return endpoints.replicas().filter(({ inFlight }) => inFlight > 0).map((replica) => ({
    replicaId: replica.replicaId,
    inFlight: replica.inFlight,
    // A number of 32 bits on the wire.
    reservedTokens: Math.min(Math.round(replica.reservedTokens), 2 ** 32 - 1),
  }));
}

async function watchAge(
  tooOld: () => boolean,
  ageMs: () => number | undefined,
  stop: AbortSignal,
): Promise<void> {
  const log = logger("router", "control");
  let warned = false;
  while (!stop.aborted) {
    if (tooOld() !== warned) {
      warned = !warned;
      if (warned) {
        log.warning("Serving from an old snapshot: control has been away for too long", {
          ageSeconds: Math.round((ageMs() ?? 0) / 1_000),
        });
      } else log.info("The snapshot is fresh again");
    }
    await delay(AGE_CHECK_MS, stop);
  }
}
