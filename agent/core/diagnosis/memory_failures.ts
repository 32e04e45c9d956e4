/** Failures for want of memory: of the GPU, of /dev/shm, of the host, of the disk. */
import type { FailureRow } from "./failure_row.ts";

export const MEMORY_FAILURES: readonly FailureRow[] = [
  {
    reason: "gpu_memory_taken",
    lines: [/Free memory on device.*less than desired GPU memory utilization/],
    meaning: "something else, often what an earlier engine left behind, holds memory of the GPU",
    remedy: "see with nvidia-smi which process holds it and end that; only if nothing does, " +
      "lower --gpu-memory-utilization",
    retry: "when_memory_free",
  },
  {
    reason: "kv_cache_no_room",
    lines: [/No available memory for the cache blocks/],
    meaning: "the weights fit, but nothing is left for the KV cache",
    remedy: "use more GPUs (tp), a shorter --max-model-len, or a higher --gpu-memory-utilization",
    retry: "permanent",
  },
  {
    reason: "context_too_long",
    lines: [/To serve at least one request with the models?'s max seq len/i],
    meaning: "the KV cache has no room for one request of the whole context",
    remedy: "set --max-model-len to the length that the line estimates, or use an fp8 KV cache",
    retry: "permanent",
  },
  {
    reason: "context_above_model",
    lines: [/max_model_len.*greater than the derived/],
    meaning: "the context that is asked for is longer than the model's own",
    remedy: "lower --max-model-len to what the line says the model has",
    retry: "permanent",
  },
  {
    reason: "cuda_graphs_no_room",
    lines: [/Capture cuda graph failed/i],
    meaning: "no GPU memory is left for CUDA graphs",
    remedy: "lower --mem-fraction-static or --cuda-graph-max-bs",
    retry: "permanent",
  },
  {
    reason: "static_memory_too_small",
    lines: [/Not enough memory\. Please try to increase --mem-fraction-static/],
    meaning: "the share of GPU memory for weights and KV cache is smaller than the two",
    remedy: "raise --mem-fraction-static, use more GPUs (tp), or a shorter --context-length",
    retry: "permanent",
  },
  {
    reason: "gpu_out_of_memory",
    lines: [
      /torch\.(?:cuda\.)?OutOfMemoryError/,
      /CUDA out of memory/,
      /CUDA error: out of memory/,
      /cudaErrorMemoryAllocation/,
      /hipErrorOutOfMemory|HIP out of memory/,
      /cudaMalloc failed: out of memory/,
      /unable to allocate CUDA\d* buffer/,
      /failed to fit params to free device memory/,
      /failed to allocate (?:CUDA|ROCm|Vulkan)\d* buffer/,
    ],
    meaning: "GPU memory ran out",
    remedy: "use more GPUs (tp), a shorter context, a smaller quantisation, or leave more headroom",
    retry: "when_memory_free",
    alternatives: [
      "the card had not been released yet by what ran there before: the next start finds it free",
    ],
  },
  {
    reason: "shm_offload_failed",
    lines: [
      /vllm_offload_.*(?:Bad address|Bus error|No space left)/i,
      /(?:Bad address|Bus error|No space left).*vllm_offload_/i,
    ],
    meaning: "/dev/shm has no room for what is offloaded to the CPU",
    remedy: "enlarge /dev/shm, and delete /dev/shm/vllm_offload_* that no process has open",
    retry: "retry",
  },
  {
    reason: "shm_too_small",
    lines: [
      /Error while creating shared memory segment/,
      /shared memory segment.*No space left on device/i,
      /\/dev\/shm.*No space left on device/,
      /No space left on device.*\/dev\/shm/,
      /No space left on device \(28\)/,
    ],
    meaning: "/dev/shm is too small, or full of what dead engines left there",
    remedy:
      "see df /dev/shm; delete /dev/shm/nccl-* and psm_* that no process has open, or enlarge it " +
      "(containers: --ipc=host, or --shm-size of 8 GiB and more)",
    retry: "retry",
  },
  {
    reason: "disk_full",
    lines: [/No space left on device/, /\bENOSPC\b/, /Disk quota exceeded/],
    meaning: "a disk is full",
    remedy: "free space where weights, HF_HOME, /tmp and the compile cache lie, or move HF_HOME",
    retry: "permanent",
    alternatives: ["it is /dev/shm that is full: see df /dev/shm"],
  },
  {
    reason: "memlock_limited",
    lines: [
      // NCCL, UCX, libfabric, NVSHMEM: the same words for a queue, which pins memory too.
      /ibv_(?:reg_(?:dmabuf_)?mr|create_(?:cq|qp|srq))\w*\b.*(?:failed|error).*Cannot allocate memory/i,
    ],
    meaning:
      "the engine may not lock the memory that it has to pin, as RDMA does with what it registers",
    remedy:
      "with launcher: systemd see `systemctl show -p LimitMEMLOCK` of its unit, which is infinity " +
      "unless a drop-in says otherwise; with launcher: process set LimitMEMLOCK=infinity for the " +
      "agent, in a container --ulimit memlock=-1",
    retry: "retry",
    alternatives: ["the host's memory is used up: see free -g"],
  },
  {
    reason: "host_memory_or_killed",
    lines: [
      /\bExit code: -9\b/,
      /^(?:\S+: line \d+: +\d+ )?Killed\b/,
      /std::bad_alloc/,
      /^MemoryError\b/,
      /Cannot allocate memory/,
      /DefaultCPUAllocator: can't allocate memory/,
    ],
    meaning: "the host's memory ran out, or somebody sent SIGKILL",
    remedy:
      "look in dmesg and in the unit's memory.events for oom_kill first; then give the host more " +
      "memory, or load with fewer workers",
    retry: "retry",
    alternatives: ["a person or another program killed it"],
  },
  {
    reason: "bus_error",
    lines: [/\bBus error\b/, /\bSIGBUS\b/],
    meaning: "memory that was mapped from a file could not be had",
    remedy: "see df /dev/shm and the disk of the weights; one of them is full or cut a file short",
    retry: "retry",
    symptom: true,
    alternatives: ["the file of weights became shorter while it was read"],
  },
];
