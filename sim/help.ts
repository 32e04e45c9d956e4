/** The text of --help. */
import { FAULT_HELP } from "./core/fault.ts";
import { type OptionSpec, SIM_OPTIONS, USED_OPTIONS } from "./core/options.ts";

const COLUMN = 36;

function line(option: OptionSpec): string {
  const value = { flag: "", value: " X", list: " X [Y…]" }[option.takes];
  return `  ${`--${option.name}${value}`.padEnd(COLUMN)}${option.help ?? ""}`;
}

/** Everything a user needs to start the simulated engine. */
export function helpText(): string {
  return [
    "heddle-sim: an inference engine without a GPU. It behaves like vLLM; what it says is invented.",
    "",
    "usage: heddle-sim serve MODEL [options]",
    "       heddle-sim --version | --help",
    "",
    "Options as in vLLM (defaults in parentheses). Others of vLLM's are accepted and ignored:",
    ...USED_OPTIONS.map(line),
    "",
    "Options of the simulation. Each can also be set as HEDDLE_SIM_<NAME>, for instance",
    "HEDDLE_SIM_DECODE_TOKENS_PER_S=100; several faults in HEDDLE_SIM_FAULT are separated by ;",
    ...SIM_OPTIONS.map(line),
    "",
    "Faults (--sim-fault KIND:key=value,…). TRIGGER is one of at_ms=N (since ready),",
    "after_requests=N, after_tokens=N; without one, as soon as the engine is ready:",
    ...FAULT_HELP.map((text) => `  ${text}`),
    "",
  ].join("\n");
}
