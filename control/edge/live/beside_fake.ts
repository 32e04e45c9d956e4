/** What stands beside the world of a control with which nothing is wrong. */
import { T0 } from "../../core/testing/builders.ts";
import type { Beside } from "./trouble_facets.ts";

export const QUIET: Beside = {
  certificates: [],
  own: undefined,
  wallMs: T0,
  control: "c1",
  catalogFile: { file: "/etc/heddle/catalog.yaml", state: "applied", detail: "" },
  storeAway: undefined,
  dropped: undefined,
};
