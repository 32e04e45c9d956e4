/**
 * What is wrong with the links that a shard's engine talks over: NVLinks between its own GPUs, and
 * the ports of its adapters. Only what was read counts. A link that was never there is not lost: what
 * a GPU should have is the most that it has had since the boot, or what the topology says; cards
 * without a bridge show links that are down for ever.
 */

/** NVLinks of one GPU. */
export interface GpuLinks {
  /** Links that are up; undefined: could not be read. */
  readonly active: number | undefined;
  /** The most that were up at once since the boot. */
  readonly most: number;
  /** What the kernel logged of its links since the boot; undefined: nothing. */
  readonly fault: string | undefined;
}

/** One port of an adapter. */
export interface PortLink {
  /** Why it carries nothing now, in words; undefined: it does. */
  readonly down: string | undefined;
  /** It works, but went down within the last minutes. */
  readonly wentDown: boolean;
}

export interface LinkReadings {
  /** By UUID; absent: unknown. */
  readonly gpus: ReadonlyMap<string, GpuLinks>;
  /** NVLinks that the topology shows between two GPUs, each pair of UUIDs once. */
  readonly pairs: readonly { readonly a: string; readonly b: string; readonly links: number }[];
  /** By `mlx5_0:1`; undefined: adapters cannot be read. A port that is not in it is gone. */
  readonly ports: ReadonlyMap<string, PortLink> | undefined;
}

export type LinkVerdict =
  | {
    readonly kind: "fault";
    readonly reason: "hca_link_down" | "hca_link_unstable" | "nvlink_fault" | "nvlink_lost";
    readonly message: string;
  }
  | { readonly kind: "well" }
  /** What would have to be known could not be read; what was known before stays true. */
  | { readonly kind: "unknown" };

/** Of a shard: its GPUs and the ports that placement gave it. */
export interface LinkUser {
  readonly gpus: readonly { readonly index: number; readonly uuid: string }[];
  readonly hcas: readonly { readonly name: string; readonly port: number }[];
}

/** Judges the links of one shard. A fault outweighs what is unknown. Never throws. */
export function judgeLinks(user: LinkUser, readings: LinkReadings): LinkVerdict {
  const verdicts = [
    ...user.gpus.map((gpu) => judgeGpu(gpu, user, readings)),
    ...user.hcas.map((port) => judgePort(port, readings)),
  ];
  return verdicts.find(({ kind }) => kind === "fault") ??
    verdicts.find(({ kind }) => kind === "unknown") ?? { kind: "well" };
}

function judgeGpu(
  { index, uuid }: LinkUser["gpus"][number],
  { gpus }: LinkUser,
  { gpus: known, pairs }: LinkReadings,
): LinkVerdict {
  // Alone it talks to nobody over NVLink.
  if (gpus.length < 2) return { kind: "well" };
  const links = known.get(uuid);
  const own = new Set(gpus.map((gpu) => gpu.uuid));
  const toGroup = pairs.filter(({ a, b }) =>
    own.has(a) && own.has(b) && (a === uuid || b === uuid)
  );
  if (links?.fault !== undefined) {
    return {
      kind: "fault",
      reason: "nvlink_fault",
      message: `The kernel logged a fault of GPU ${index}'s NVLinks: ${links.fault}. Restart the ` +
        "node when the replica can move; have the GPU or its board replaced if it returns",
    };
  }
  const most = Math.max(links?.most ?? 0, ...toGroup.map((pair) => pair.links));
  if (most === 0) return { kind: "well" };
  if (links?.active === undefined) return { kind: "unknown" };
  if (links.active >= most) return { kind: "well" };
  return {
    kind: "fault",
    reason: "nvlink_lost",
    message:
      `GPU ${index} has ${links.active} of its ${most} NVLinks left, so that what it sends ` +
      "to the shard's other GPUs is slow or stands still. See nvidia-smi nvlink -s -i " +
      `${index}; drain the node, and reseat or replace what is between`,
  };
}

function judgePort(
  { name, port }: LinkUser["hcas"][number],
  { ports }: LinkReadings,
): LinkVerdict {
  if (ports === undefined) return { kind: "unknown" };
  const link = ports.get(`${name}:${port}`);
  if (link === undefined) {
    return {
      kind: "fault",
      reason: "hca_link_down",
      message: `The adapter ${name} port ${port}, which the engine was given, is gone from this ` +
        "node. Look for its driver's lines in the kernel log",
    };
  }
  if (link.down !== undefined) {
    return { kind: "fault", reason: "hca_link_down", message: link.down };
  }
  if (!link.wentDown) return { kind: "well" };
  return {
    kind: "fault",
    reason: "hca_link_unstable",
    message:
      `The link of ${name} port ${port} went down within the last ten minutes; collectives ` +
      "over it stall or fail. Check cable, transceiver and switch port",
  };
}
