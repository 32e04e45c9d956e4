import { deepEqual, equal, match } from "node:assert/strict";
import { parseNvlinkStatus } from "../nvidia/nvlink_status.ts";
import { judgeNvlinks, type LinksSeen } from "./nvlinks.ts";

const UUIDS = ["GPU-a", "GPU-b"];
const SAME = new Map(UUIDS.map((uuid) => [uuid, "NVIDIA H100 80GB HBM3"]));
const NONE = new Map<string, number>();

/** What `nvidia-smi nvlink -s` prints: links that are up and down of each card; "all": none is up. */
function printed(...cards: readonly (readonly [up: number, down: number] | "all")[]): string {
  return cards.map((card, index) => {
    const title = `GPU ${index}: NVIDIA H100 80GB HBM3 (UUID: ${UUIDS[index]})\n`;
    if (card === "all") {
      return `${title}NVML: Unable to retrieve NVLink information as all links are inActive\n`;
    }
    const [up, down] = card;
    return title +
      Array.from({ length: up }, (_, at) => `\t Link ${at}: 26.562 GB/s\n`).join("") +
      Array.from({ length: down }, (_, at) => `\t Link ${up + at}: <inactive>\n`).join("");
  }).join("");
}

const judge = (text: string, seen: LinksSeen = NONE, kinds = SAME) =>
  judgeNvlinks(parseNvlinkStatus(text), kinds, seen);

Deno.test("fewer links up than the board has is an impairment, from the first look", () => {
  const { count, impairment } = judge(printed([18, 0], [17, 1]));
  deepEqual(count, { up: 35, expected: 36 });
  match(impairment?.message ?? "", /35 of 36 NVLinks are up: GPU-b has 17 of its 18/);
});

Deno.test("all links up is no impairment", () => {
  deepEqual(judge(printed([18, 0], [18, 0])).count, { up: 36, expected: 36 });
  equal(judge(printed([18, 0], [18, 0])).impairment, undefined);
});

Deno.test("cards without a bridge are not judged", () => {
  for (const text of [printed([0, 4], [0, 4]), printed("all", "all")]) {
    deepEqual([judge(text).count, judge(text).impairment], [undefined, undefined]);
  }
});

Deno.test("a card that lost all its links is seen beside its like, and after a look when it had them", () => {
  deepEqual(judge(printed([18, 0], "all")).count, { up: 18, expected: 36 });
  const { seen } = judge(printed([18, 0], [18, 0]));
  deepEqual(judge(printed("all", "all"), seen).count, { up: 0, expected: 36 });
});

Deno.test("cards of another kind say nothing about each other", () => {
  const kinds = new Map([["GPU-a", "NVIDIA A100-SXM4-80GB"], ["GPU-b", "NVIDIA A100-PCIE-80GB"]]);
  equal(judge(printed([12, 0], [0, 4]), NONE, kinds).impairment, undefined);
});

Deno.test("no reading, no NVLink and MIG are neither a claim nor an impairment", () => {
  for (
    const text of [
      "",
      "GPU 0: NVIDIA L40S (UUID: GPU-a)\n",
      "Nvlink queries are not supported for Devices in MIG mode\n",
    ]
  ) {
    deepEqual([judge(text).count, judge(text).impairment], [undefined, undefined]);
  }
});

Deno.test("a link that retries is up: its error counters are not asked", () => {
  const text = `${printed([2, 0])}\t Link 0: Replay Errors: 99999\n\t Link 1: CRC Errors: 12\n`;
  equal(judge(text).impairment, undefined);
});
