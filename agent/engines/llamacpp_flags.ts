/**
 * Flags of llama.cpp's server that came or went between builds, as the `--help` of real servers and
 * their source have it (`tests/fixtures/engines/llamacpp-*.txt`). A build between the two that were
 * looked at is not judged: its server says itself what it does not know.
 */

export interface Came {
  /** The last build that was seen without, and the first with. */
  readonly lacking: number;
  readonly has: number;
  readonly flags: readonly string[];
}

export const CAME: readonly Came[] = [
  {
    lacking: 9_093,
    has: 10_434,
    flags: [
      "--agent",
      "--checkpoint-min-step",
      "--cors-credentials",
      "--cors-headers",
      "--cors-methods",
      "--cors-origins",
      "--fim-qwen-1",
      "--load-mode",
      "--log-prompts-dir",
      "--mcp-servers-config",
      "--mcp-servers-json",
      "--mtmd-batch-max-tokens",
      "--no-agent",
      "--no-cors-credentials",
      "--no-log-prefix",
      "--no-log-timestamps",
      "--no-reasoning-preserve",
      "--no-spec-draft-backend-sampling",
      "--no-ui",
      "--no-ui-mcp-proxy",
      "--reasoning-effort",
      "--reasoning-preserve",
      "--spec-draft-backend-sampling",
      "--sse-ping-interval",
      "--tools-runtime",
      "--ui",
      "--ui-config",
      "--ui-config-file",
      "--ui-mcp-proxy",
      "-ag",
      "-cms",
      "-lm",
      "-no-ag",
    ],
  },
  {
    lacking: 10_434,
    has: 11_434,
    flags: [
      "--kv-unified-per-slot",
      "--lazy-mode",
      "--log-jsonl",
      "--mmproj-device",
      "--n-cpu-ffn",
      "--no-log-jsonl",
      "--spec-draft-sampling",
      "--spec-synth-len",
      "--spec-synth-rates",
      "--video-ffmpeg-dir",
      "--video-fps",
      "--video-timestamp-interval",
      "-lzm",
      "-mmdev",
      "-ncffn",
    ],
  },
];

export interface Went {
  /** The last build that was seen with, and the first without. */
  readonly has: number;
  readonly lacking: number;
  /** Each with what says the same now. */
  readonly flags: Readonly<Record<string, string>>;
}

export const WENT: readonly Went[] = [
  {
    has: 10_830,
    lacking: 10_950,
    flags: {
      "--mmap": "--load-mode mmap",
      "--no-mmap": "--load-mode none",
      "--mlock": "--load-mode mlock",
      "--direct-io": "--load-mode dio",
      "-dio": "--load-mode dio",
      "--no-direct-io": "--load-mode mmap",
      "-ndio": "--load-mode mmap",
    },
  },
];
