/** Failures of the node, of the engine's installation, and between nodes. */
import type { FailureRow } from "./failure_row.ts";

export const NODE_FAILURES: readonly FailureRow[] = [
  {
    reason: "collective_timeout",
    lines: [/Watchdog caught collective operation timeout/],
    meaning: "one rank is stuck or dead, and the others waited for it",
    remedy:
      "look at the rank whose log stops first; check the fabric between the nodes, and P2P within",
    retry: "retry",
    symptom: true,
  },
  {
    reason: "worker_died",
    lines: [/Worker proc \S+ died unexpectedly/],
    meaning: "one of the engine's own processes died without a word of its own",
    remedy:
      "see the node's kernel log (journalctl -k) for a fault or an out-of-memory kill of that process",
    retry: "retry",
    symptom: true,
    alternatives: [
      "its native code is built for another torch, processor or driver than is installed",
      "the node ran out of memory",
    ],
  },
  {
    reason: "env_vllm_port",
    lines: [/VLLM_PORT.*appears to be a URI/],
    meaning: "VLLM_PORT holds a URI, as Kubernetes sets it for a service named vllm",
    remedy: "take VLLM_PORT out of the engine's environment, or rename that service",
    retry: "permanent",
  },
  {
    reason: "derived_port_taken",
    lines: [
      /scheduler_input_port at.*is not available/,
      /port at \d+ is not available in \d+ seconds/,
    ],
    meaning: "a port that SGLang derives from its own is taken",
    remedy: "move engine_ports below the ephemeral range (net.ipv4.ip_local_port_range)",
    retry: "retry",
  },
  {
    reason: "port_taken",
    lines: [
      /\[Errno 98\]/,
      /address already in use/i,
      /EADDRINUSE/,
      /couldn't bind HTTP server socket/,
    ],
    meaning: "a port that the engine wants is taken",
    remedy: "find its holder with ss -ltnp; the next start may be given other ports",
    retry: "retry",
    alternatives: [
      "it is not the HTTP port but one of those that engines open among themselves",
      "an earlier engine of this shard still closes its sockets",
    ],
  },
  {
    reason: "gpu_uuid_in_environment",
    lines: [/invalid literal for int\(\) with base 10: '(?:MIG|GPU)-/],
    meaning: "CUDA_VISIBLE_DEVICES holds UUIDs, which this engine cannot read",
    remedy: "take CUDA_VISIBLE_DEVICES out of the profile's env: GPUs are given by index",
    retry: "permanent",
  },
  {
    reason: "gpu_architecture_not_built",
    lines: [/no kernel image is available for execution on the device/],
    meaning: "the engine was not built for this kind of GPU",
    remedy: "install a build that has it, or a newer engine",
    retry: "permanent",
  },
  {
    reason: "driver_older_than_toolkit",
    lines: [/UnsupportedPtxVersion/, /unsupported toolchain/, /CUDA_ERROR_UNSUPPORTED_PTX_VERSION/],
    meaning: "the driver is older than the CUDA toolkit that compiled the code",
    remedy: "update the driver, or install the engine for an older CUDA",
    retry: "permanent",
  },
  {
    reason: "driver_too_old",
    lines: [
      /NVIDIA driver on your system is too old/,
      /CUDA driver version is insufficient for CUDA runtime version/,
    ],
    meaning: "the driver is too old for the engine's CUDA",
    remedy: "install driver 580 or newer for CUDA 13, 525 or newer for CUDA 12",
    retry: "permanent",
  },
  {
    reason: "cuda_compat_mismatch",
    lines: [
      /Error 80[34]\b/,
      /forward compatibility was attempted on non supported HW/,
      /system has unsupported display driver/,
    ],
    meaning:
      "CUDA's compatibility libraries do not go with this driver, or the driver was upgraded " +
      "without a reboot",
    remedy: "take the compat folder out of LD_LIBRARY_PATH, and reboot if the driver was upgraded",
    retry: "permanent",
  },
  {
    reason: "fabric_manager_down",
    lines: [/Error 802\b/, /system not yet initialized/],
    meaning: "NVLink's switches are not set up: the fabric manager does not run",
    remedy: "start nvidia-fabricmanager, of the driver's very version",
    retry: "permanent",
  },
  {
    reason: "gpu_fault",
    lines: [
      /uncorrectable ECC error encountered/,
      /fallen off the bus/,
      /CUDA error: (?:unspecified launch failure|device-side assert|an illegal instruction)/,
      /an illegal memory access was encountered/,
      /NVRM: Xid/,
    ],
    meaning: "the GPU reports a fault, or a kernel of the engine has one",
    remedy:
      "look for Xid lines in dmesg: 48, 63, 64, 79, 94 and 95 mean the card; 13 and 31 alone " +
      "rather the engine",
    retry: "retry",
    alternatives: ["it is a bug of this version of the engine with this model"],
  },
  {
    reason: "cuda_library_missing",
    lines: [
      /lib(?:cuda|cudart|cublas\w*|cudnn\w*|nccl|nvrtc|cufile|nvJitLink)\.so[.\d]*: cannot open/,
    ],
    meaning: "the engine was built for another CUDA than is installed",
    remedy: "install the engine for the CUDA that is here, or that CUDA for the engine",
    retry: "permanent",
  },
  {
    reason: "engine_build_mixed",
    lines: [/_C\.abi3\.so: undefined symbol/, /undefined symbol: _ZN?K?\d*(?:c10|at|torch)/],
    meaning: "the engine and its torch were built for different versions of each other",
    remedy: "install the engine anew in a clean environment, and let it choose its torch",
    retry: "permanent",
  },
  {
    reason: "compiler_missing",
    lines: [
      /Could not find nvcc/,
      /\bninja\b.*(?:not found|not installed|is required)/i,
      /No such file or directory: '(?:\S*\/)?(?:ninja|nvcc|gcc|g\+\+|cc)'/,
      /Failed to find C compiler/,
      /FlashInfer.*(?:build|compil\w+) (?:failed|error)/i,
      /CUDA_HOME environment variable is not set/,
    ],
    meaning: "kernels have to be compiled at the start, and the compiler for it is missing",
    remedy: "install the CUDA toolkit, a C++ compiler and ninja, or turn that backend off",
    retry: "permanent",
  },
  {
    reason: "glibc_too_old",
    lines: [/version [`'‘]GLIBC(?:XX)?_[\d.]+['’] not found/],
    meaning: "this system is older than the one that the engine was built on",
    remedy: "use a container or a newer system, or build the engine here",
    retry: "permanent",
  },
  {
    reason: "library_missing",
    lines: [
      /lib[\w.+-]+\.so[.\d]*: cannot open shared object file/,
      /error while loading shared libraries/,
    ],
    meaning: "a library of the engine is missing",
    remedy:
      "install it (libgomp.so.1 is in libgomp1), and copy the engine's whole folder, not its " +
      "program alone",
    retry: "permanent",
  },
  {
    reason: "python_module_missing",
    lines: [/^(?:ModuleNotFoundError|ImportError): /],
    meaning: "a Python module of the engine is missing or does not fit",
    remedy: "install the engine anew in a clean environment",
    retry: "permanent",
  },
  {
    reason: "arguments_refused",
    lines: [
      /error: unrecognized arguments:/,
      /error: argument \S+: /,
      /error: ambiguous option: /,
      /error: the following arguments are required/,
      /^error: invalid argument: /,
      /error while handling argument "/,
      /^heddle-sim: (?:unknown option |--\S+ needs a value|\S+: a flag is true or false)/,
    ],
    meaning: "this version of the engine does not know an argument, or not with that value",
    remedy: "correct args of the profile; see the engine's own --help on this node",
    retry: "permanent",
  },
  {
    reason: "ray_version_mismatch",
    lines: [/Version mismatch: The cluster was started with/],
    meaning: "Ray or Python is of another version on one of the nodes",
    remedy: "install the same engine, Ray and Python on every node",
    retry: "permanent",
  },
  {
    reason: "ray_too_few_gpus",
    lines: [
      /Current node has no GPU available/,
      /exceeds.*available GPUs in the placement group/,
      /exceeds total number of available GPUs/,
      /No available node types can fulfill/,
      /Cannot provide a placement group/,
      /in vain for (?:all GPUs to join Ray|Ray's head)/,
    ],
    meaning: "Ray sees too few GPUs, or knows a node under another address than VLLM_HOST_IP",
    remedy: "look at ray status on the leader; clear placement groups that an earlier start left",
    retry: "retry",
  },
  {
    reason: "hostname_is_loopback",
    lines: [
      /Gloo connectFullMesh failed/,
      /Unable to resolve hostname to a \(local\) address/,
    ],
    meaning: "the node's own name resolves to 127.0.x.1, where other nodes do not reach it",
    remedy: "correct /etc/hosts; GLOO_SOCKET_IFNAME and VLLM_HOST_IP are set by the agent",
    retry: "permanent",
    alternatives: ["a firewall is between the nodes: engines connect on ephemeral ports, too"],
  },
  {
    reason: "rendezvous_timeout",
    lines: [
      /DistStoreError: Timed out.*clients joined/,
      /DistNetworkError: .*(?:timed? ?out|failed to connect)/i,
      /The client socket has (?:timed out|failed to connect)/,
    ],
    meaning: "a rank never joined the others",
    remedy:
      "look at the rank that is missing; open the leader's ports between the nodes; dp over Ray " +
      "needs --data-parallel-backend ray",
    retry: "retry",
    symptom: true,
  },
  {
    reason: "nccl_system_error",
    lines: [
      /NCCL error.*unhandled (?:system|cuda) error/,
      /ncclSystemError|ncclUnhandledCudaError/,
    ],
    meaning: "NCCL cannot use shared memory, pinned memory or a network interface",
    remedy:
      "set NCCL_DEBUG=INFO in the profile's env and look at the lines before; check df /dev/shm " +
      "and ulimit -l",
    retry: "retry",
    symptom: true,
    alternatives: ["memlock is limited: RDMA pins what it registers", "/dev/shm is full"],
  },
  {
    reason: "engine_start_timeout",
    lines: [
      /TimeoutError: Timed out waiting for engine/i,
      /Timed out waiting for (?:the )?engine core/i,
      /Did not receive response from front-end process within/,
    ],
    meaning: "the engine gave up waiting for itself: slow disk, or kernels being compiled",
    remedy: "raise startup_timeout of the profile, from which VLLM_ENGINE_READY_TIMEOUT_S is set",
    retry: "retry",
    symptom: true,
  },
  {
    reason: "no_gpu_visible",
    lines: [
      /Failed to infer device type/,
      /No CUDA GPUs are available/,
      /no CUDA-capable device is detected/,
      /Found no NVIDIA driver on your system/,
      /ggml_cuda_init: failed to initialize CUDA/,
      /invalid device ordinal/,
    ],
    meaning: "the engine sees no GPU: the driver or the container's toolkit is missing",
    remedy: "run nvidia-smi as the user that engines run as; containers need --gpus",
    retry: "permanent",
  },
  {
    reason: "permission_denied",
    lines: [/PermissionError: \[Errno 13\]/, /\bPermission denied\b/],
    meaning: "the user that the engine runs as may not read or write a file",
    remedy: "give that user the file; weights want mode 640 and group heddle-engine",
    retry: "permanent",
  },
  {
    reason: "model_inspection_failed",
    lines: [/failed to be inspected/],
    meaning: "a helper of the engine crashed while it looked at the model",
    remedy: "read the lines above it: a library is missing, or CUDA_VISIBLE_DEVICES holds UUIDs",
    retry: "permanent",
    symptom: true,
  },
  {
    reason: "interrupted",
    lines: [/^KeyboardInterrupt\b/, /\bReceived SIGTERM\b/i, /terminated by signal 15/],
    meaning: "it was told to end",
    remedy: "see who sent SIGTERM; after a stop that control ordered this is no failure",
    retry: "retry",
    symptom: true,
  },
];
