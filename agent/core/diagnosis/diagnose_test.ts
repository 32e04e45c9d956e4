import { deepEqual, equal, match, ok } from "node:assert/strict";
import { diagnose, type Diagnosis, diagnosisText } from "./diagnose.ts";
import type { Evidence } from "./evidence.ts";
import { FAILURE_ROWS } from "./failure_table.ts";
import { LogDigest } from "./log_digest.ts";

function digestOf(text: string): LogDigest {
  const digest = new LogDigest();
  for (const line of text.split("\n")) digest.push(line);
  return digest;
}

function diagnosed(
  logs: Readonly<Record<string, string>> | string,
  evidence: Evidence = {},
): Diagnosis {
  const given = typeof logs === "string" ? { server: logs } : logs;
  const found = diagnose(
    Object.entries(given).map(([process, text]) => ({ process, digest: digestOf(text) })),
    evidence,
  );
  return found ?? never();
}

function never(): never {
  throw new Error("no diagnosis");
}

/** Per reason, ends of logs as engines write them; the line that counts is marked with "» ". */
const CASES: Readonly<Record<string, readonly string[]>> = {
  gpu_memory_taken: [
    `(EngineCore_DP0 pid=4411) INFO 09-12 08:14:02 [gpu_worker.py:298] Available devices: 1
» (EngineCore_DP0 pid=4411) ERROR 09-12 08:14:03 [core.py:842] ValueError: Free memory on device cuda:0 (9.31/79.18 GiB) on startup is less than desired GPU memory utilization (0.92, 72.85 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.
(APIServer pid=4390) RuntimeError: Engine core initialization failed. See root cause above. Failed core proc(s): {'EngineCore_DP0': 1}`,
  ],
  gpu_memory_share_too_high: [
    `» ValueError: Free memory on device (78.4/79.18 GiB) on startup is less than desired GPU memory utilization (0.995, 78.78 GiB).`,
  ],
  kv_cache_no_room: [
    `» ERROR 09-12 08:20:41 [core.py:842] ValueError: No available memory for the cache blocks. Try increasing \`gpu_memory_utilization\` when initializing the engine.`,
  ],
  worker_died: [
    `(Worker pid=21109) INFO 11-30 01:55:01 [cpu_worker.py:260] Explicitly set (1.0/23.54) GiB for KV cache on node 0.
» (EngineCore pid=19544) ERROR 11-30 01:55:17 [multiproc_executor.py:315] Worker proc VllmWorker-0 died unexpectedly (exit code: None), shutting down executor.
(EngineCore pid=19544) INFO 11-30 01:55:17 [multiproc_executor.py:486] [shutdown] Executor: all workers exited gracefully
(EngineCore pid=19544) ERROR 11-30 01:55:17 [core.py:1512] EngineCore encountered a fatal error.
(EngineCore pid=19544) ERROR 11-30 01:55:17 [core.py:1512] Traceback (most recent call last):
(EngineCore pid=19544) ERROR 11-30 01:55:17 [core.py:1512]     raise RuntimeError("cancelled")
(EngineCore pid=19544) ERROR 11-30 01:55:17 [core.py:1512] RuntimeError: cancelled
(APIServer pid=17217) ERROR 11-30 01:55:17 [async_llm.py:906] vllm.v1.engine.exceptions.EngineDeadError: EngineCore encountered an issue. See stack trace (above) for the root cause.`,
  ],
  context_too_long: [
    `» ValueError: To serve at least one request with the models's max seq len (131072), (16.0 GiB KV cache is needed`,
  ],
  context_above_model: [
    `» pydantic_core._pydantic_core.ValidationError: 1 validation error: Value error, User-specified max_model_len (65536) is greater than the derived max_model_len (max_position_embeddings=32768 or model_max_length=None in model's config.json).`,
  ],
  gpu_out_of_memory: [
    `» [rank1]: torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.96 GiB. GPU 1 has a total capacity of 79.18 GiB of which 512.00 MiB is free.`,
    `0.00.812.331 I llama_model_load_from_file_impl: using device CUDA0 (NVIDIA GeForce RTX 4090) - 2012 MiB free
» 0.01.204.117 E ggml_backend_cuda_buffer_type_alloc_buffer: allocating 17230.11 MiB on device 0: cudaMalloc failed: out of memory
0.01.204.310 E llama_model_load: error loading model: unable to allocate CUDA0 buffer
0.01.204.988 E srv    load_model: failed to load model, '/models/q.gguf'
main: exiting due to model loading error`,
    `» llama_params_fit: failed to fit params to free device memory: n_gpu_layers already set by user to 999`,
  ],
  cuda_graphs_no_room: [
    `[2026-09-12 08:14:02 TP0] Capture cuda graph begin. This can take up to several minutes.
» [2026-09-12 08:15:10 TP0] Exception: Capture cuda graph failed: CUDA error`,
  ],
  static_memory_too_small: [
    `» [2026-09-12 08:15:10 TP1] RuntimeError: Not enough memory. Please try to increase --mem-fraction-static.`,
  ],
  collective_timeout: [
    `» [rank3]:[E912 08:33:10.123456789 ProcessGroupNCCL.cpp:629] [Rank 3] Watchdog caught collective operation timeout: WorkNCCL(SeqNum=4521, OpType=ALLREDUCE, NumelIn=8192, Timeout(ms)=600000) ran for 600014 milliseconds before timing out.`,
  ],
  nccl_system_error: [
    `» torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/NCCLUtils.hpp:328, unhandled system error (run with NCCL_DEBUG=INFO for details)`,
  ],
  memlock_limited: [
    `» node-3:812:1033 [0] misc/ibvwrap.cc:190 NCCL WARN Call to ibv_reg_mr_iova2 failed with error Cannot allocate memory
node-3:812:1033 [0] NCCL INFO transport/net.cc:612 -> 2`,
    `» [1725000000.1] [node-3:812:0] ib_md.c:282 UCX ERROR ibv_reg_mr(address=0x7f, length=4096, access=0xf) failed: Cannot allocate memory. Please set max locked memory (ulimit -l) to 'unlimited' (current: 64 kbytes)`,
    `» node-3:812:1033 [0] misc/ibvwrap.cc:201 NCCL WARN Call to ibv_create_cq failed with error Cannot allocate memory`,
  ],
  shm_too_small: [
    `» node-3:812:1033 [0] misc/shmutils.cc:72 NCCL WARN Error while creating shared memory segment /dev/shm/nccl-k2Ts3a (size 9637888), error: No space left on device (28)`,
  ],
  port_taken: [
    `» OSError: [Errno 98] Address already in use`,
    `» 0.00.031.002 E start: couldn't bind HTTP server socket, hostname: 10.0.0.4, port: 20000`,
    `» [rank0]: torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. port: 29500, useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use`,
  ],
  env_vllm_port: [
    `» ValueError: VLLM_PORT 'tcp://10.43.0.8:8000' appears to be a URI. This may be caused by a Kubernetes service discovery issue`,
  ],
  model_path_wrong: [
    `» ERROR 09-12 08:00:00 [config.py:130] ValueError: Invalid repository ID or local directory specified: '/models/llama'.`,
    `» huggingface_hub.errors.HFValidationError: Repo id must be in the form 'repo_name' or 'namespace/repo_name': '/models/llama/8b'.`,
  ],
  model_gated: [
    `» OSError: You are trying to access a gated repo.
Make sure to have access to it at https://hub/meta/llama.
401 Client Error. (Request ID: Root=1-68)`,
    `» huggingface_hub.errors.RepositoryNotFoundError: 401 Client Error. (Request ID: Root=1-68c3)`,
  ],
  model_not_cached: [
    `» huggingface_hub.errors.LocalEntryNotFoundError: Cannot find an appropriate cached snapshot folder for the specified revision on the local disk and outgoing traffic has been disabled.`,
  ],
  disk_full: [
    `» RuntimeError: Data processing error: CAS service error : IO Error: No space left on device (os error 28)`,
    `» OSError: [Errno 28] No space left on device: '/var/lib/heddle/engine-home/.cache/vllm/torch_compile_cache/1'`,
  ],
  model_file_damaged: [
    `» safetensors_rust.SafetensorError: Error while deserializing header: HeaderTooLarge`,
    `» (Worker_TP1 pid=81) ERROR 09-12 08:00:00 [multiproc_executor.py:590] safetensors_rust.SafetensorError: Error while deserializing header: MetadataIncompleteBuffer`,
    `» gguf_init_from_file_impl: invalid magic characters: 'vers', expected 'GGUF'
llama_model_load: error loading model: llama_model_loader: failed to load model from q.gguf`,
  ],
  model_architecture_unknown: [
    `» ValueError: The checkpoint you are trying to load has model type \`glm9\` but Transformers does not recognize this architecture.`,
    `» ValueError: Model architectures ['Glm9ForCausalLM'] are not supported for now. Supported architectures: dict_keys(['AquilaModel'])`,
    `» llama_model_load: error loading model: error loading model architecture: unknown model architecture: 'glm9'`,
  ],
  model_inspection_failed: [
    `» pydantic_core._pydantic_core.ValidationError: Value error, Model architectures ['LlamaForCausalLM'] failed to be inspected. Please check the logs for more details.`,
  ],
  quantization_unsupported_by_gpu: [
    `» ValueError: The quantization method fp8 is not supported for the current GPU. Minimum capability: 89. Current capability: 75.`,
  ],
  bfloat16_unsupported_by_gpu: [
    `» ValueError: Bfloat16 is only supported on GPUs with compute capability of at least 8.0. Your Tesla T4 GPU has compute capability 7.5.`,
  ],
  gpu_architecture_not_built: [
    `» RuntimeError: CUDA error: no kernel image is available for execution on the device`,
  ],
  driver_older_than_toolkit: [
    `» torch.AcceleratorError: CUDA error: the provided PTX was compiled with an unsupported toolchain.`,
  ],
  driver_too_old: [
    `» RuntimeError: The NVIDIA driver on your system is too old (found version 11040).`,
  ],
  cuda_compat_mismatch: [
    `» RuntimeError: Unexpected error from cudaGetDeviceCount(). Did you run some cuda functions before calling NumCudaDevices() that might have already set an error? Error 804: forward compatibility was attempted on non supported HW`,
    `» RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 803: system has unsupported display driver / cuda driver combination`,
  ],
  fabric_manager_down: [
    `» RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 802: system not yet initialized`,
  ],
  cuda_library_missing: [
    `» ImportError: libcudart.so.13: cannot open shared object file: No such file or directory`,
  ],
  engine_build_mixed: [
    `» ImportError: /opt/vllm/lib/python3.12/site-packages/vllm/_C.abi3.so: undefined symbol: _ZN3c104cuda29c10_cuda_check_implementationEiPKcS2_ib`,
  ],
  compiler_missing: [
    `» RuntimeError: Could not find nvcc and default cuda_home='/usr/local/cuda' doesn't exist`,
    `» FileNotFoundError: [Errno 2] No such file or directory: 'ninja'`,
  ],
  glibc_too_old: [
    "» ./llama-server: /lib/x86_64-linux-gnu/libc.so.6: version `GLIBC_2.38' not found (required by ./llama-server)",
    "» ImportError: /lib/x86_64-linux-gnu/libstdc++.so.6: version `GLIBCXX_3.4.32' not found",
  ],
  library_missing: [
    `» /opt/heddle/engines/llamacpp/llama-server: error while loading shared libraries: libgomp.so.1: cannot open shared object file: No such file or directory`,
  ],
  ray_version_mismatch: [
    `» RuntimeError: Version mismatch: The cluster was started with:
    Ray: 2.49.0
    Python: 3.12.3`,
  ],
  ray_too_few_gpus: [
    `» ValueError: Current node has no GPU available. current_node_resource={'CPU': 64.0}.`,
    `» (autoscaler +1m8s) Error: No available node types can fulfill resource request {'GPU': 1.0, 'node:10.0.0.4': 0.001}.`,
  ],
  hostname_is_loopback: [
    `» RuntimeError: Gloo connectFullMesh failed with [../third_party/gloo/gloo/transport/tcp/pair.cc:144] no error, remote 127.0.1.1:40123`,
  ],
  rendezvous_timeout: [
    `» torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 2/8 clients joined.`,
  ],
  tensor_parallel_indivisible: [
    `» ValueError: Total number of attention heads (28) must be divisible by tensor parallel size (8).`,
  ],
  gpu_uuid_in_environment: [
    `» ValueError: invalid literal for int() with base 10: 'MIG-5f8a2b1c-0000-1111-2222-333344445555'`,
  ],
  tokenizer_too_new: [
    `» Exception: data did not match any variant of untagged enum ModelWrapper at line 1251003 column 3`,
  ],
  host_memory_or_killed: [
    `[2026-09-12 08:15:10] Rank 0 scheduler is dead. Please check if there are relevant logs.
» [2026-09-12 08:15:11] Exit code: -9
[2026-09-12 08:15:11] Received sigquit from a child process. It usually means the child failed.`,
    `» Killed`,
  ],
  model_file_missing: [
    `» 0.00.104.220 E gguf_init_from_file: failed to open GGUF file '/models/q.gguf' (No such file or directory)`,
  ],
  shm_offload_failed: [
    `» OSError: [Errno 14] Bad address: '/dev/shm/vllm_offload_5c1f.mmap'`,
  ],
  engine_start_timeout: [
    `» TimeoutError: Timed out waiting for engine core processes to start. This is often caused by slow weight loading for large models.`,
  ],
  derived_port_taken: [
    `» [2026-09-12 08:15:10] ValueError: scheduler_input_port at 30234 is not available in 30 seconds.`,
  ],
  no_gpu_visible: [
    `» RuntimeError: Failed to infer device type, please set the environment variable \`VLLM_LOGGING_LEVEL=DEBUG\``,
  ],
  arguments_refused: [
    `usage: vllm serve [model_tag] [options]
» vllm serve: error: unrecognized arguments: --enable-magic`,
    `» error: invalid argument: --no-such-flag`,
    `» vllm serve: error: argument -tp/--tensor-parallel-size: must be at least 1`,
    `» vllm serve: error: ambiguous option: --max could match --max-model-len, --max-num-seqs`,
    `» heddle-sim: unknown option --no-such-flag`,
  ],
  model_code_not_trusted: [
    `» ValueError: The repository /models/x contains custom code which must be executed to correctly load the model. Please pass the argument \`trust_remote_code=True\``,
  ],
  python_module_missing: [`» ModuleNotFoundError: No module named 'vllm'`],
  permission_denied: [
    `» PermissionError: [Errno 13] Permission denied: '/var/lib/heddle/models/x/config.json'`,
  ],
  gpu_fault: [
    `» torch.AcceleratorError: CUDA error: uncorrectable ECC error encountered`,
  ],
  bus_error: [`» Fatal Python error: Bus error`],
  interrupted: [
    `Traceback (most recent call last):
  File "/opt/vllm/bin/vllm", line 8, in <module>
» KeyboardInterrupt: terminated`,
  ],
};

Deno.test("diagnose() knows each kind of failure from a log as its engine writes it", () => {
  for (const [reason, texts] of Object.entries(CASES)) {
    for (const text of texts) {
      const marked = text.split("\n").find((line) => line.startsWith("» "))?.slice(2);
      const found = diagnosed(`INFO: starting\n${text.replace(/^» /m, "")}`);
      equal(found.reason, reason, text);
      equal(found.said?.line, marked, text);
    }
  }
});

Deno.test("the cases have every row of the table, and rows have reasons that differ", () => {
  const reasons = FAILURE_ROWS.map(({ reason }) => reason);
  equal(new Set(reasons).size, reasons.length);
  deepEqual(reasons.filter((reason) => !(reason in CASES)), []);
});

Deno.test("rows say their words without a full stop, and how to go on", () => {
  for (const { reason, meaning, remedy, alternatives = [] } of FAILURE_ROWS) {
    match(reason, /^[a-z0-9_]+$/);
    for (const words of [meaning, remedy, ...alternatives]) {
      ok(words.length > 10 && !words.endsWith("."), `${reason}: ${words}`);
    }
  }
});

Deno.test("diagnose() reports what happened first, on whichever process", () => {
  const found = diagnosed({
    "server": `(EngineCore pid=1) INFO 09-12 08:00:00 [x.py:1] up
(EngineCore pid=1) ERROR 09-12 08:10:00 [core.py:1] torch.distributed.DistStoreError: Timed out after 601 seconds waiting for clients. 1/2 clients joined.
(EngineCore pid=1) ERROR 09-12 08:10:01 [core.py:1] OSError: [Errno 98] Address already in use`,
    "worker":
      `(Worker_TP1 pid=2) ERROR 09-12 07:59:58 [w.py:1] torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB.`,
  });
  equal(found.reason, "gpu_out_of_memory");
  equal(found.said?.process, "worker");
});

Deno.test("diagnose() takes a cause on one rank before its echo on another in the same second", () => {
  const found = diagnosed({
    "rank 1":
      `[rank1]:[E912 08:10:00.100000000 ProcessGroupNCCL.cpp:1] NCCL error: unhandled system error`,
    "rank 0":
      `[rank0]:[E912 08:10:00.900000000 a.cpp:1] torch.OutOfMemoryError: CUDA out of memory.`,
  });
  equal(found.reason, "gpu_out_of_memory");
});

Deno.test("diagnose() keeps a symptom that came long before anything else", () => {
  const found = diagnosed(
    `ERROR 09-12 08:00:00 [a.py:1] RuntimeError: NCCL error: unhandled system error
ERROR 09-12 08:09:00 [a.py:1] OSError: [Errno 98] Address already in use`,
  );
  equal(found.reason, "nccl_system_error");
});

Deno.test("diagnose() passes over what is said as information, and warnings when there are errors", () => {
  const log = `INFO 09-12 08:00:00 [a.py:1] Retrying after CUDA out of memory while profiling
WARNING 09-12 08:00:01 [a.py:1] ninja not found, falling back
ERROR 09-12 08:00:02 [a.py:1] ValueError: No available memory for the cache blocks.`;
  equal(diagnosed(log).reason, "kv_cache_no_room");
  equal(diagnosed(log.split("\n").slice(0, 2).join("\n")).reason, "compiler_missing");
});

Deno.test("diagnose() passes over an engine's own arguments, whatever words they hold", () => {
  const log = `[2026-09-12 08:00:00] server_args=ServerArgs(chat_template='CUDA out of memory')
[2026-09-12 08:00:09] ValueError: Total number of attention heads (28) must be divisible by tensor parallel size (3).`;
  equal(diagnosed(log).reason, "tensor_parallel_indivisible");
});

Deno.test("diagnose() says how an end that the log is silent about came", () => {
  const quiet = "INFO up";
  const exit = (signal: string, code: number, outOfMemory = false) => ({
    exit: { code, signal, outOfMemory },
  });
  equal(diagnosed(quiet, exit("SIGKILL", 137)).reason, "killed");
  equal(diagnosed(quiet, exit("SIGKILL", 137, true)).reason, "host_out_of_memory");
  equal(diagnosed(quiet, exit("SIGILL", 132)).reason, "cpu_instruction_missing");
  equal(diagnosed(quiet, exit("SIGSEGV", 139)).reason, "engine_crashed");
  equal(diagnosed(quiet, exit("", 127)).permanent, true);
  equal(diagnose([{ process: "server", digest: digestOf(quiet) }], exit("", 0)), undefined);
  const words = "RuntimeError: the moon is in the wrong phase";
  const odd = diagnosed(`Traceback (most recent call last):\n  File "a.py", line 1\n${words}`);
  equal(odd.reason, "unexplained");
  equal(odd.said?.line, words);
});

Deno.test("diagnose() believes the kernel's count of OOM kills over a symptom, not over a cause", () => {
  const exit = { code: 137, signal: "SIGKILL", outOfMemory: true };
  equal(diagnosed("[2026-09-12 08:15:11] Exit code: -9", { exit }).reason, "host_out_of_memory");
  equal(
    diagnosed("ValueError: No available memory for the cache blocks.", { exit }).reason,
    "kv_cache_no_room",
  );
});

Deno.test("diagnose() tells a full disk from a full /dev/shm by what is free", () => {
  const log = "OSError: [Errno 28] No space left on device";
  const unknown = diagnosed(log);
  equal(unknown.reason, "disk_full");
  ok(unknown.alternatives.length > 0, "it says what else it may be");
  const shm = diagnosed(log, { diskFreeBytes: 1e12, shmFreeBytes: 0 });
  equal(shm.reason, "shm_too_small");
  deepEqual(shm.alternatives, []);
  const disk = diagnosed("No space left on device (28)", { diskFreeBytes: 0, shmFreeBytes: 1e10 });
  equal(disk.reason, "disk_full");
});

Deno.test("diagnosisText() names who holds the GPU", () => {
  const found = diagnosed(
    "ValueError: Free memory on device (9.31/79.18 GiB) on startup is less than desired GPU memory utilization (0.92, 72.85 GiB).",
    {
      gpus: [{
        index: 2,
        usedMib: 71_000,
        totalMib: 81_559,
        holders: [{ pid: 77, name: "python" }],
      }],
    },
  );
  const text = diagnosisText(found);
  match(text, /GPU 2 now has 71000 of 81559 MiB in use, held by pid 77 \(python\)/);
  match(text, /To do: .*\. .*The server's log says: ValueError: Free memory/);
  equal(found.permanent, false);
});

const LOST_GPU = {
  index: 3,
  xid: 79,
  verdict: "out",
  text: "GPU has fallen off the bus.",
} as const;

Deno.test("diagnose() takes a GPU that the kernel saw fail for the cause of what engines say then", () => {
  const log = "ERROR torch.AcceleratorError: CUDA error: unspecified launch failure";
  const found = diagnosed(log, { gpuFaults: [LOST_GPU] });
  equal(found.reason, "gpu_fault");
  match(diagnosisText(found), /GPU 3 failed while it ran.*Xid 79, GPU has fallen off the bus/);
  const silent = diagnosed("INFO serving", {
    exit: { code: 1, signal: "", outOfMemory: false },
    gpuFaults: [{ ...LOST_GPU, xid: 74, verdict: "nvlink", text: "NVLink error" }],
  });
  equal(silent.reason, "nvlink_fault");
  equal(silent.permanent, false);
});

Deno.test("diagnose() blames no GPU for a flag that the engine refused", () => {
  const log = "vllm: error: unrecognized arguments: --no-such-flag";
  ok(diagnosed(log, { gpuFaults: [LOST_GPU] }).reason !== "gpu_fault");
});

Deno.test("diagnose() tells what the kernel logged of a program's own doing beside what it said", () => {
  const mmu = { index: 0, xid: 31, verdict: "ignore", text: "pid=7, MMU Fault" } as const;
  const alone = diagnosed("INFO serving", { gpuFaults: [mmu] });
  equal(alone.reason, "gpu_program_fault");
  const crash = diagnosed("INFO serving", {
    exit: { signal: "SIGSEGV", outOfMemory: false },
    gpuFaults: [mmu],
  });
  equal(crash.reason, "engine_crashed");
  match(diagnosisText(crash), /Xid 31, pid=7, MMU Fault/);
});

Deno.test("diagnose() knows from what may be locked whether that was it", () => {
  const log = {
    server: "ERROR 09-12 08:00:00 [a.py:1] RuntimeError: NCCL error: unhandled system error",
  };
  const limited = diagnosed(log, { memlockBytes: 8 * 1024 ** 2, usesAdapters: true });
  equal(diagnosed(log, { memlockBytes: 65_536, usesAdapters: false }).reason, "nccl_system_error");
  deepEqual([limited.reason, limited.permanent], ["memlock_limited", false]);
  deepEqual(limited.facts, ["It could lock 8192 KiB of memory"]);
  const free = diagnosed(log, { memlockBytes: Infinity });
  deepEqual([free.reason, free.alternatives], ["nccl_system_error", ["/dev/shm is full"]]);
  const said =
    "n:8:9 [0] a.cc:1 NCCL WARN Call to ibv_reg_mr failed with error Cannot allocate memory";
  match(diagnosed(said, { memlockBytes: Infinity }).remedy, /see free -g/);
  const refused = diagnosed(said, { memlockBytes: 65_536 });
  deepEqual([refused.permanent, refused.alternatives], [true, []]);
});
