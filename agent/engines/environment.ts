/**
 * The whole environment of an engine. Nothing is inherited from the agent: what a login shell or a
 * container happens to set has changed engines in ways that take days to find. Later lines win, and
 * the profile's come last; control refuses those that would undo placement.
 */
import type { ShardSpec } from "../core/shard/shard.ts";
import type { Environment } from "./engine.ts";

/** How many adapters NCCL reads; it drops the rest without a word. */
const NCCL_HCAS_MAX = 32;

export interface NodeEnvironment {
  /** A folder of its own for what engines keep. */
  readonly home: string;
  /** The interface that holds the management address; empty when there is none (behind NAT). */
  readonly managementInterface: string;
  /** `engine_env` of agent.yaml. */
  readonly engineEnv: Environment;
  /** `env` of the engine in agent.yaml. */
  readonly ofEngine: Environment;
}

const SYSTEM_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";

/** Folders, and what the operator adds: enough to ask an engine for its version. */
export function basicEnvironment(node: NodeEnvironment, enginePath: string): Environment {
  const folder = enginePath.replace(/\/[^/]*$/, "");
  return {
    // A virtual environment keeps its tools beside its Python.
    PATH: `${folder}:${SYSTEM_PATH}`,
    HOME: node.home,
    HF_HOME: `${node.home}/huggingface`,
    ...node.engineEnv,
    ...node.ofEngine,
  };
}

/** Everything a process of `spec` gets; `adapter` is what its engine's adapter wants set. */
export function engineEnvironment(
  spec: ShardSpec,
  node: NodeEnvironment,
  engine: { readonly path: string; readonly adapter: Environment },
): Environment {
  return {
    ...basicEnvironment(node, engine.path),
    // Weights are fetched before; a hub token never reaches an engine.
    HF_HUB_OFFLINE: "1",
    ...gpuVariables(spec),
    ...interfaceVariables(node.managementInterface),
    ...fabricVariables(spec),
    ...engine.adapter,
    ...spec.env,
  };
}

// By index: engines fail on UUIDs in this list. And in PCI order, for that is what an index means.
function gpuVariables(spec: ShardSpec): Environment {
  return {
    CUDA_DEVICE_ORDER: "PCI_BUS_ID",
    CUDA_VISIBLE_DEVICES: spec.gpus.map(({ index }) => index).join(","),
  };
}

function interfaceVariables(name: string): Environment {
  // NCCL ignores names of one letter, and an empty list would mean every interface.
  if (name.length < 2) return {};
  return { NCCL_SOCKET_IFNAME: `=${name}`, GLOO_SOCKET_IFNAME: name, TP_SOCKET_IFNAME: name };
}

function fabricVariables({ hcas, roceGidIndex }: ShardSpec): Environment {
  // Never an empty list: that would mean every adapter there is.
  if (hcas.length === 0) return { NCCL_IB_DISABLE: "1" };
  const ports = hcas.slice(0, NCCL_HCAS_MAX).map(({ name, port }) => `${name}:${port}`).join(",");
  return {
    // Without "=" names are prefixes, and mlx5_1 would take mlx5_10 too.
    NCCL_IB_HCA: `=${ports}`,
    UCX_NET_DEVICES: ports,
    NVSHMEM_HCA_LIST: ports,
    // Only where one number is right on every port of every rank; else each finds its own.
    ...(roceGidIndex === undefined ? {} : {
      NCCL_IB_GID_INDEX: String(roceGidIndex),
      UCX_IB_GID_INDEX: String(roceGidIndex),
      NVSHMEM_IB_GID_INDEX: String(roceGidIndex),
    }),
  };
}
