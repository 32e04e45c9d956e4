/** The decisions that a console offers, each with what it means. */
import type { NodeItem, ReplicaItem } from "../edge/console/wire.ts";
import type { Action } from "./parts/action.tsx";

export function nodeActions(
  node: string,
  { cordoned, draining, state, attached }: NodeItem,
): readonly Action[] {
  const request = { node };
  const cordon: Action = {
    label: "Cordon",
    title: `Cordon node ${node}?`,
    meaning: "Nothing new is placed on it. What runs there goes on.",
    method: "Cordon",
    request,
    asked: { kind: "cordon", node },
    reason: true,
    grave: false,
  };
  const drain: Action = {
    label: "Drain",
    title: `Drain node ${node}?`,
    meaning: attached === undefined
      ? "What runs there is moved elsewhere where there is room, and then stopped there."
      : "Routers send it nothing any more. The engine is not Heddle's to stop, and runs on.",
    method: "Drain",
    request,
    asked: { kind: "drain", node },
    reason: true,
    grave: true,
  };
  const uncordon: Action = {
    label: "Uncordon",
    title: `Uncordon node ${node}?`,
    meaning: attached === undefined
      ? "It takes new replicas again. This ends cordon and drain."
      : "Routers send it requests again.",
    method: "Uncordon",
    request,
    asked: { kind: "uncordon", node },
    reason: false,
    grave: false,
  };
  const forget: Action = {
    label: "Forget",
    title: `Forget node ${node}?`,
    meaning: "What is remembered of it is dropped. Should it come back, it registers anew.",
    method: "ForgetNode",
    request,
    reason: false,
    grave: true,
  };
  // Nothing is ever placed beside an attached engine, and it is forgotten by itself.
  if (attached !== undefined) return [cordoned || draining ? uncordon : drain];
  return [
    ...(cordoned || draining ? [] : [cordon]),
    ...(draining ? [] : [drain]),
    ...(cordoned || draining ? [uncordon] : []),
    ...(state === "lost" ? [forget] : []),
  ];
}

export function modelActions(
  model: string,
  { paused, held, desired, failedStarts }: {
    readonly paused: boolean;
    readonly held?: number;
    readonly desired: number;
    readonly failedStarts: number;
  },
): readonly Action[] {
  const request = { model };
  const plain = { request, reason: false, grave: false };
  const pause: Action = paused
    ? {
      ...plain,
      label: "Resume",
      title: `Resume model ${model}?`,
      meaning: "It is started, replaced and scaled again.",
      method: "ResumeModel",
      asked: { kind: "resume", model },
    }
    : {
      ...plain,
      label: "Pause",
      title: `Pause model ${model}?`,
      meaning: "Nothing of it is started, replaced or scaled. What runs serves on.",
      method: "PauseModel",
      asked: { kind: "pause", model },
      reason: true,
    };
  const scale: Action = {
    ...plain,
    label: "Scale",
    title: `Hold model ${model} at a number of replicas?`,
    meaning: "It has so many, whatever the catalog and demand say, until it may scale again.",
    method: "ScaleModel",
    asked: { kind: "scale", model },
    reason: true,
    number: { field: "replicas", label: "Replicas", value: held ?? desired },
  };
  const clear: Action = {
    ...plain,
    label: "Let it scale",
    title: `Let model ${model} scale again?`,
    meaning: "The catalog and demand say again how many replicas it has.",
    method: "ClearScale",
    asked: { kind: "clear_scale", model },
  };
  const retry: Action = {
    ...plain,
    label: "Retry",
    title: `Start model ${model} again at once?`,
    meaning: "Its failed starts and its waiting time are forgotten.",
    method: "RetryModel",
  };
  return [
    pause,
    scale,
    ...(held === undefined ? [] : [clear]),
    ...(failedStarts > 0 ? [retry] : []),
  ];
}

export function replicaActions(
  replicaId: string,
  { state, inFlight, attached }: ReplicaItem,
): readonly Action[] {
  // What something else started is not ours to stop: draining its node takes it from the routers.
  if (attached !== undefined) return [];
  if (state === "stopping" || state === "failed" || state === "stopped") return [];
  const request = { replicaId };
  const has = inFlight === undefined ? "" : ` It has ${inFlight} requests in flight.`;
  return [
    {
      label: "Restart",
      title: `Restart replica ${replicaId}?`,
      meaning: `A new one is ready first where there is room; then this one goes.${has}`,
      method: "RestartReplica",
      request,
      asked: { kind: "restart", replica: replicaId },
      reason: true,
      grave: false,
    },
    {
      label: "Stop",
      title: `Stop replica ${replicaId}?`,
      meaning:
        `Its requests are finished, then it stops. Another is started if as many are wanted.${has}`,
      method: "StopReplica",
      request,
      asked: { kind: "stop", replica: replicaId },
      reason: true,
      grave: true,
    },
  ];
}
