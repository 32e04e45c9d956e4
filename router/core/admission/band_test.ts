import { equal } from "node:assert/strict";
import { bandOf, type BandWishes } from "./band.ts";

function band(over: Partial<BandWishes>): string {
  return bandOf({
    header: undefined,
    caller: undefined,
    model: undefined,
    fallback: "silver",
    ceiling: "platinum",
    ...over,
  });
}

Deno.test("bandOf() asks the header, then the key, then the model, then the settings", () => {
  equal(band({}), "silver");
  equal(band({ model: "bronze" }), "bronze");
  equal(band({ model: "bronze", caller: "gold" }), "gold");
  equal(band({ model: "bronze", caller: "gold", header: " Platinum " }), "platinum");
  equal(band({ header: "diamond", model: "gold" }), "gold");
  equal(band({ header: "constructor" }), "silver");
});

Deno.test("bandOf() gives nobody a band above the ceiling, whoever asks for it", () => {
  equal(band({ header: "platinum", ceiling: "silver" }), "silver");
  equal(band({ caller: "platinum", ceiling: "gold" }), "gold");
  equal(band({ model: "gold", ceiling: "bronze" }), "bronze");
  equal(band({ header: "bronze", ceiling: "gold" }), "bronze");
});
