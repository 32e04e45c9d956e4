/**
 * vLLM over Ray: a head beside the server on the first node, a worker on each other one, and the
 * server once, on the head. Workers may only join a head that listens, and the server may only start
 * when all GPUs have joined, or it judges by what it sees; so each waits, in a shell, and not for
 * ever. Every port of Ray is pinned inside the shard's block.
 */
import type { ShardSpec } from "../core/shard/shard.ts";
import {
  type Built,
  type EngineProcess,
  type Environment,
  httpPort,
  type LaunchInput,
  type PortUse,
  refused,
} from "./engine.ts";

/** Where in a shard's block of ports each of Ray's listeners is. */
const GCS_PORT = 32;
const PORTS = {
  "--node-manager-port": 33,
  "--object-manager-port": 34,
  "--runtime-env-agent-port": 35,
  "--dashboard-agent-grpc-port": 36,
  "--dashboard-agent-listen-port": 37,
  "--metrics-export-port": 38,
} as const;
const CLIENT_PORT = 39;
/** Each process on each GPU takes one, and vLLM some besides. */
const WORKER_PORTS = 64;
const PORTS_MIN = 128;

/** As long as ranks of other engines wait for each other. */
const RENDEZVOUS_S = 300;
const POLL_S = 2;

// Its arguments: the program ray, the address of the head, and the command that is started then.
const WORKER_SCRIPT = waiting('"$ray" health-check --address "$address"', "Ray's head to listen");

// The line "0.0/16.0 GPU" counts the GPUs of all nodes that have joined.
const SERVER_SCRIPT = waiting(
  '"$ray" status --address "$address" | grep -q "/$gpus\\.0 GPU"',
  "all GPUs to join Ray",
  "gpus=$1; shift; ",
);

// Sockets have short names, and units a /tmp of their own: so the folder is below HOME.
// Where Ray's client is installed (it is when grpc is) a head opens a port for it, which would be
// another head's too; where it is not, naming the port is an error.
const HEAD_SCRIPT = 'client=$1; shift; if "${1%/*}/python3" -c "import grpc" 2>/dev/null; then ' +
  'set -- "$@" --ray-client-server-port "$client"; fi; exec "$@" --temp-dir "$HOME/ray"';

function waiting(test: string, what: string, more = ""): string {
  const rounds = RENDEZVOUS_S / POLL_S;
  return `ray=$1; address=$2; shift 2; ${more}n=0; until ${test} >/dev/null 2>&1; do ` +
    `n=$((n+1)); if [ $n -gt ${rounds} ]; then ` +
    `echo "ERROR: Waited ${RENDEZVOUS_S} s in vain for ${what} at $address:" >&2; ` +
    '"$ray" status --address "$address" >&2; exit 1; fi; ' +
    `sleep ${POLL_S}; done; exec "$@"`;
}

/** The processes of one shard; `server` is the command of the leader's server. */
export function rayProcesses(
  input: LaunchInput,
  server: { readonly argv: readonly string[]; readonly env: Environment },
): Built {
  const { spec, engine } = input;
  if (spec.portCount < PORTS_MIN) {
    return refused(
      "parallel_layout_unsupported",
      `Cannot start ${engine.name} over Ray in a block of ${spec.portCount} ports: it needs ` +
        `${PORTS_MIN}; raise engine_ports.block`,
    );
  }
  const ray = `${engine.path.replace(/[^/]*$/, "")}ray`;
  const address = hostPort(spec.leaderAddress, spec.leaderPort + GCS_PORT);
  const env = { ...server.env, RAY_ADDRESS: address, RAY_USAGE_STATS_ENABLED: "0" };
  if (spec.rank > 0) {
    const join = [ray, "start", "--address", address, ...nodeArgs(input)];
    const argv = ["/bin/sh", "-c", WORKER_SCRIPT, "heddle-ray", ray, address, ...join];
    return processes(spec, [{ name: "worker", argv, env }]);
  }
  const { RAY_ADDRESS: _, ...headEnv } = env;
  const head = [
    ...[ray, "start", "--head", "--port", String(spec.portFirst + GCS_PORT)],
    "--include-dashboard=false",
    ...nodeArgs(input),
  ];
  const gpus = Math.max(1, spec.tp) * Math.max(1, spec.pp) * Math.max(1, spec.dp);
  return processes(spec, [
    {
      name: "head",
      argv: [
        ...["/bin/sh", "-c", HEAD_SCRIPT, "heddle-ray", String(spec.portFirst + CLIENT_PORT)],
        ...head,
      ],
      env: headEnv,
    },
    {
      name: "server",
      argv: [
        ...["/bin/sh", "-c", SERVER_SCRIPT, "heddle-ray", ray, address, String(gpus)],
        ...server.argv,
      ],
      env,
    },
  ]);
}

function nodeArgs({ spec, address }: LaunchInput): readonly string[] {
  const { portFirst } = spec;
  return [
    ...["--node-ip-address", address, "--num-gpus", String(spec.gpus.length)],
    ...Object.entries(PORTS).flatMap(([flag, offset]) => [flag, String(portFirst + offset)]),
    ...["--min-worker-port", String(portFirst + WORKER_PORTS)],
    ...["--max-worker-port", String(portFirst + spec.portCount - 1)],
    "--disable-usage-stats",
    "--block",
  ];
}

function processes(spec: ShardSpec, list: readonly EngineProcess[]): Built {
  return { kind: "processes", processes: list, ports: [...httpPort(spec), ...rayPorts(spec)] };
}

// Its workers take what is free of theirs.
function rayPorts({ rank, portFirst }: ShardSpec): readonly PortUse[] {
  const offsets = [...Object.values(PORTS), ...(rank === 0 ? [GCS_PORT, CLIENT_PORT] : [])];
  return offsets.sort((a, b) => a - b)
    .map((offset) => ({ port: portFirst + offset, use: "Ray", internal: true }));
}

function hostPort(host: string, port: number): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}
