/**
 * Members that steer an engine rather than an answer: its queue, its caches, its parallel layout,
 * code it loads, or where a request goes. They are the router's to set, never a caller's.
 */

/** By name, at the top level of any request. vLLM's, SGLang's, llama.cpp's, and other gateways'. */
const CONTROL_FIELDS: ReadonlySet<string> = new Set([
  // Where a request goes, and with whose key.
  "api_base",
  "api_key",
  "base_url",
  "custom_llm_provider",
  "extra_headers",
  // The queue.
  "priority",
  "request_id",
  "rid",
  // The cache: a caller who chooses another's salt reads what that one has asked.
  "cache_salt",
  "extra_key",
  // The parallel layout, and hand-over between engines.
  "bootstrap_host",
  "bootstrap_port",
  "bootstrap_room",
  "data_parallel_rank",
  "decode_tp_size",
  "disagg_prefill_dp_rank",
  "ec_transfer_params",
  "id_slot",
  "kv_transfer_params",
  "routed_dp_rank",
  // Code, weights and state inside the engine.
  "custom_logit_processor",
  "custom_params",
  "logits_processors",
  "prompt_embeds",
  "lora",
  "lora_path",
  "session_params",
  // What it writes into its logs and metrics, or gives away of its insides.
  "custom_labels",
  "log_metrics",
  "return_hidden_states",
  "return_routed_experts",
]);

/** What becomes of them: taken out and named in a header, or the request is refused. */
export type ControlFieldPolicy = "strip" | "refuse";

export function isControlField(name: string): boolean {
  return CONTROL_FIELDS.has(name);
}
