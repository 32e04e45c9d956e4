/**
 * GPU class: the name under which GPUs are interchangeable, from the driver's name and the measured
 * memory. Names alone lie (one name, two memory sizes), memory alone says nothing, and matching by
 * "contains" merges what must stay apart (`gh200` contains `h200`). So the name is cleaned word by
 * word, the memory is rounded up to a nominal size, and a name nobody has seen yet goes through the
 * same steps and gets a class of its own.
 */

/** Gives every GPU named `name` (and, when set, of `memoryMib`) the class `gpuClass`. */
export interface GpuClassOverride {
  /** The name as the driver prints it, compared without regard to case. */
  readonly name: string;
  /** Measured memory in MiB; absent applies to every size. */
  readonly memoryMib?: number;
  readonly gpuClass: string;
}
