/** Failures of the model: its files, where they come from, and what the engine makes of them. */
import type { FailureRow } from "./failure_row.ts";

export const MODEL_FAILURES: readonly FailureRow[] = [
  {
    reason: "model_gated",
    lines: [
      /gated repo/i,
      /GatedRepoError/,
      /401 Client Error/,
      /403 Client Error/,
      /Access to model .* is restricted/,
    ],
    meaning:
      "the model's licence was not accepted, or the token that fetched it is missing or invalid",
    remedy:
      "accept the terms with the account of the token, and fetch the weights again before the start",
    retry: "permanent",
    alternatives: ["the name has a typo: hubs answer 401 for what does not exist, too"],
  },
  {
    reason: "model_not_cached",
    lines: [
      /outgoing traffic has been disabled/,
      /OfflineModeIsEnabled/,
      /LocalEntryNotFoundError/,
      /Cannot find the requested files in the disk cache/i,
      /couldn't connect to .*huggingface\.co.*(?:cached|load)/i,
    ],
    meaning: "engines fetch nothing, and a file of the model is not on this node",
    remedy: "fetch the whole snapshot to this node first, its tokenizer and chat template included",
    retry: "permanent",
  },
  {
    reason: "model_path_wrong",
    lines: [
      /Invalid repository ID or local directory specified/,
      /Repo id must be/,
      /HFValidationError/,
      /is not a local folder and is not a valid model identifier/,
      /does not appear to have a file named config\.json/,
      /Cannot find any model weights with/,
    ],
    meaning: "the path of the model is wrong, or its folder is not mounted on this node",
    remedy: "look for that path on this node, and correct the model's source",
    retry: "permanent",
  },
  {
    reason: "model_file_missing",
    lines: [
      /failed to open GGUF file/,
      /gguf_init_from_file: failed to open/,
      /failed to open .*\.gguf/,
    ],
    meaning: "the model's file is not there, or the engine's user may not read it",
    remedy: "look for that path on this node, as the user that engines run as",
    retry: "permanent",
  },
  {
    reason: "model_file_damaged",
    lines: [
      /HeaderTooLarge/,
      /HeaderTooSmall/,
      /MetadataIncompleteBuffer/,
      /InvalidHeaderDeserialization|invalid header/i,
      /invalid magic/,
      /PytorchStreamReader failed reading zip archive/,
      /tensor '.*' data is not within the file bounds/,
      /failed to read tensor data|model is corrupted or incomplete/,
      /Unable to load weights from pytorch checkpoint file/,
    ],
    meaning: "a file of weights is cut short, or is a Git LFS pointer of some 130 bytes",
    remedy: "delete it, fetch it again, and compare its size or checksum",
    retry: "permanent",
    alternatives: ["the file is of another kind than the engine reads"],
  },
  {
    reason: "model_architecture_unknown",
    lines: [
      /does not recognize this architecture/,
      /Model architectures? .* (?:is|are) not supported/,
      /has no vLLM implementation and the Transformers implementation is not compatible/,
      /unknown model architecture/,
      /Unsupported architectures?:/,
    ],
    meaning: "this version of the engine does not know the model's architecture",
    remedy: "upgrade the engine (and transformers with it), or run the model with another engine",
    retry: "permanent",
  },
  {
    reason: "model_code_not_trusted",
    lines: [/trust_remote_code=True/, /contains custom code which must be executed/],
    meaning: "the model brings code of its own, which the engine does not run unasked",
    remedy: "read that code; if you trust it, give --trust-remote-code in the profile",
    retry: "permanent",
  },
  {
    reason: "tokenizer_too_new",
    lines: [/did not match any variant of untagged enum/],
    meaning: "tokenizer.json is newer than the engine's library for it",
    remedy: "upgrade transformers and tokenizers in the engine's environment",
    retry: "permanent",
  },
  {
    reason: "quantization_unsupported_by_gpu",
    lines: [
      /quantization method.*is not supported for the current GPU/,
      /Minimum capability: \d+.*Current capability/,
      /FP8 .*requires? .*compute capability/i,
    ],
    meaning: "this GPU is too old for the model's quantisation",
    remedy: "take another quantisation (AWQ, GPTQ), or a GPU class that is newer",
    retry: "permanent",
  },
  {
    reason: "bfloat16_unsupported_by_gpu",
    lines: [/Bfloat16 is only supported on GPUs with compute capability of at least 8\.0/],
    meaning: "this GPU cannot compute in bfloat16",
    remedy: "give --dtype half in the profile",
    retry: "permanent",
  },
  {
    reason: "tensor_parallel_indivisible",
    lines: [
      /must be divisible by tensor (?:model )?parallel size/i,
      /must be divisible by (?:the )?(?:number of )?(?:tp_size|tensor_parallel)/i,
      /is not divisible by weight quantization block/,
      /\d+ is not divisible by \d+/,
    ],
    meaning: "the model cannot be divided over so many GPUs",
    remedy: "take a tp that divides the model's attention heads, or use pp",
    retry: "permanent",
  },
];
