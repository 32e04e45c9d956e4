/**
 * Heddle's own lint rules, run by `deno lint`: who may import whom, and what core may touch. Each
 * rule states its exceptions where it is defined, and its message says what to do instead.
 */
import { fileURLToPath } from "node:url";
import config from "../../deno.json" with { type: "json" };
import { barrels } from "./barrels.ts";
import { cycles, importsOnDisk } from "./cycles.ts";
import { genValues } from "./gen_values.ts";
import { lastingUsing } from "./lasting_using.ts";
import { layers } from "./layers.ts";
import { pureCore } from "./pure_core.ts";
import { rooms } from "./rooms.ts";

/** The repository's root, without a trailing slash. */
const ROOT = fileURLToPath(new URL("../..", import.meta.url)).replace(/\/$/, "");

export default {
  name: "heddle",
  rules: {
    rooms: rooms(ROOT, Object.keys(config.imports)),
    layers: layers(ROOT),
    "pure-core": pureCore(ROOT),
    "gen-values": genValues(ROOT),
    barrels: barrels(ROOT),
    "lasting-using": lastingUsing(ROOT),
    cycles: cycles(ROOT, importsOnDisk(ROOT)),
  },
} satisfies Deno.lint.Plugin;
