/** What operators measure, and what the fleet carries by that. */
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { HeddleError } from "@heddle/proto/error";
import type { CapacityService, RecordMeasurementRequest } from "@heddle/proto/gen/capacity";
import type { StoredMeasurement } from "../../core/capacity/measurement.ts";
import { engineVersion, hardwareClass } from "../../core/capacity/running.ts";
import { findModel, type Model } from "../../core/catalog.ts";
import { profileOf } from "../../core/catalog/fingerprint.ts";
import { settled, unheard } from "../../core/facts/settled.ts";
import type { EpochMs } from "../../core/ids.ts";
import type { StoreRecord } from "../../core/store_record.ts";
import { replicaState } from "../../core/views/replicas.ts";
import type { Replica, World } from "../../core/world.ts";
import { findNamed, modelName } from "../admin/known_name.ts";
import { capacityOf } from "./model_capacity.ts";

/** Longest name of a shape: it stands in tables. */
const SHAPE_CHARS_MAX = 200;

export interface CapacityRpcOptions {
  /** Throws for a caller who is no operator. */
  readonly by: (context: HandlerContext) => string;
  readonly loop: {
    world(): World;
    /** The loop's clock. */
    now(): EpochMs;
  };
  readonly measurements: () => Promise<readonly StoredMeasurement[]>;
  readonly persist: (records: readonly StoreRecord[]) => Promise<void>;
  /** In ms since 1970. */
  readonly wallClock: () => number;
}

export function capacityRpc(options: CapacityRpcOptions): ServiceImpl<typeof CapacityService> {
  const { by, loop, measurements, persist, wallClock } = options;
  return {
    async recordMeasurement(request, context) {
      const name = by(context);
      const measured = measurementOf(loop.world(), request, loop.now());
      const before = measured.unstable && (await measurements()).find(supersedes(measured));
      if (before) return { measurement: before, kept: true };
      const measurement = { ...measured, atMs: BigInt(Math.round(wallClock())), by: name };
      await persist([{ kind: "measurement", measurement }]);
      return { measurement };
    },
    async getCapacity({ model, shape }, context) {
      by(context);
      const [world, now] = [loop.world(), loop.now()];
      demandSettled(world, now);
      const stored = await measurements();
      const models = [];
      for (const each of modelsOf(world, model)) {
        // In a list of all models, one that nobody measured has nothing to tell of another node.
        const withGains = model !== "" || stored.some((known) => known.model === each.name);
        models.push(await capacityOf({ world, now, model: each, shape, stored, withGains }));
      }
      return { models };
    },
  };
}

function demandSettled(world: World, now: EpochMs): void {
  if (settled(world, now)) return;
  throw new HeddleError(
    "failed_precondition",
    `Cannot tell capacity yet: control has just begun to lead, and ${
      unheard(world).length
    } known ` +
      "nodes have not registered. Try again in a minute",
  );
}

function modelsOf(world: World, nameOrAlias: string): readonly Model[] {
  const { catalog } = world.catalog;
  if (nameOrAlias === "") return catalog.models;
  const found = findModel(catalog, modelName(world, "tell the capacity of", nameOrAlias));
  if (found !== undefined) return [found];
  const text = `Cannot tell the capacity of ${nameOrAlias}: it left the catalog`;
  throw new HeddleError("failed_precondition", text);
}

type Measured = Omit<StoredMeasurement, "atMs" | "by">;

/** What is better known than one that is not stable: of the same engine, for the same promise. */
function supersedes(unstable: Measured): (stored: StoredMeasurement) => boolean {
  return (stored) =>
    !stored.unstable && stored.fingerprint === unstable.fingerprint &&
    stored.hardwareClass === unstable.hardwareClass &&
    stored.engineVersion === unstable.engineVersion && stored.shape === unstable.shape &&
    stored.ttftMs === unstable.ttftMs && stored.tpotMs === unstable.tpotMs;
}

/** What was measured, for each replica. Throws `invalid_input`, `not_found` or `failed_precondition`. */
function measurementOf(world: World, request: RecordMeasurementRequest, now: EpochMs): Measured {
  checkNumbers(request);
  const replicas = request.replicaIds.map((id) => readyReplica(world, id, now));
  const [first] = replicas;
  if (first === undefined) throw wrong("it names no replica");
  const others = replicas.filter(({ fingerprint }) => fingerprint !== first.fingerprint);
  if (others.length > 0) throw wrong("its replicas are of different profiles");
  const model = findModel(world.catalog.catalog, first.model);
  const profile = model && profileOf(model, first.fingerprint);
  if (profile === undefined) {
    throw new HeddleError(
      "failed_precondition",
      `Cannot record what "${first.id}" carries: its profile left the catalog, or was changed`,
    );
  }
  const { shape, ttftMs, tpotMs, within, spread, unstable } = request;
  const count = replicas.length;
  return {
    model: first.model,
    profile: profile.name,
    fingerprint: first.fingerprint,
    engine: profile.engine,
    engineVersion: engineVersion(world, first),
    hardwareClass: hardwareClass(profile),
    shape,
    ttftMs,
    tpotMs,
    within,
    spread,
    unstable,
    requestsPerSecond: request.requestsPerSecond / count,
    concurrency: request.concurrency / count,
    outputTokensPerSecond: request.outputTokensPerSecond / count,
    replicas: count,
  };
}

function readyReplica(world: World, id: string, now: EpochMs): Replica {
  const what = { action: "record a measurement", noun: "replica", name: id };
  const replica = findNamed(what, [...world.replicas.values()], (each) => each.id);
  const { state } = replicaState(world, replica, now);
  if (state === "ready") return replica;
  throw new HeddleError(
    "failed_precondition",
    `Cannot record what "${id}" carries: it is ${state}, and was perhaps not itself when measured`,
  );
}

function checkNumbers(request: RecordMeasurementRequest): void {
  const { ttftMs, tpotMs, requestsPerSecond, concurrency, within, spread } = request;
  const positive = { ttftMs, tpotMs, requestsPerSecond, concurrency, within };
  for (const [name, value] of Object.entries(positive)) {
    if (!Number.isFinite(value) || value <= 0) throw wrong(`its ${name} is ${value}`);
  }
  const rest = { outputTokensPerSecond: request.outputTokensPerSecond, spread };
  for (const [name, value] of Object.entries(rest)) {
    if (!Number.isFinite(value) || value < 0) throw wrong(`its ${name} is ${value}`);
  }
  if (within > 1) throw wrong(`its within is ${within}, more than all`);
  if (request.shape === "" || request.shape.length > SHAPE_CHARS_MAX) {
    throw wrong(`the name of its shape has ${request.shape.length} characters`);
  }
}

function wrong(why: string): HeddleError {
  return new HeddleError("invalid_input", `Cannot record the measurement: ${why}`);
}
