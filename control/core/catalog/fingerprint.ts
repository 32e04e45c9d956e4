/** What would need a new engine if it changed, as a hash; everything else is applied live. */
import { hash32 } from "@heddle/common/backoff";
import type { Model, Profile } from "../catalog.ts";

/**
 * Equal for two profiles exactly when an engine started for one serves the other. Weight, priority,
 * timeouts, selectors and the profile's name are not in it.
 */
export function fingerprint(model: ModelIdentity, profile: Profile): string {
  const known = MADE.get(profile);
  const { name } = model;
  const source = JSON.stringify([model.source, model.source_include, model.source_exclude]);
  if (known !== undefined && known.name === name && known.source === source) return known.print;
  const print = make(model, profile);
  MADE.set(profile, { name, source, print });
  return print;
}

type ModelIdentity =
  & Pick<Model, "name" | "source">
  & Partial<Pick<Model, "source_include" | "source_exclude">>;

/** Every replica asks for it in every pass, and profiles never change: they are replaced. */
const MADE = new WeakMap<Profile, { name: string; source: string; print: string }>();

function make(model: ModelIdentity, profile: Profile): string {
  const { source_include = [], source_exclude = [] } = model;
  const text = JSON.stringify([
    model.name,
    model.source,
    profile.engine,
    profile.engine_version,
    profile.gpu_class ?? "",
    profile.tp,
    profile.pp,
    profile.dp,
    profile.nodes,
    profile.gpus_per_node,
    profile.launch_mode,
    profile.args,
    Object.entries(profile.env).sort(([a], [b]) => a < b ? -1 : a > b ? 1 : 0),
    profile.memory ?? "",
    // Left out where there are none, so that what runs since before they existed stays.
    ...(source_include.length + source_exclude.length === 0
      ? []
      : [source_include, source_exclude]),
  ]);
  // Two 32-bit halves from different starting points: one alone would collide in a long history.
  return [hash32(text), hash32(`2:${text}`)]
    .map((half) => half.toString(16).padStart(8, "0")).join("");
}

/** The profile whose engines have this fingerprint, whatever it is called now. */
export function profileOf(model: Model, print: string): Profile | undefined {
  return model.profiles.find((profile) => fingerprint(model, profile) === print);
}
