import { deepEqual, equal } from "node:assert/strict";
import { parseSysfsCapture } from "../core/host/sysfs_capture.ts";
import { CapturedSysfs, RecordingSysfs } from "../edge/hardware/captured_sysfs.ts";
import { RdmaWatch } from "./rdma_watch.ts";

const FIXTURES = new URL("../../tests/fixtures/hardware/sysfs/", import.meta.url);

Deno.test("RdmaWatch asks a function that refuses its counters once, and never again", async () => {
  const tsv = Deno.readTextFileSync(new URL("restricted-pf-einval.tsv", FIXTURES));
  const counted: string[] = [];
  class Counting extends CapturedSysfs {
    override attribute(path: string) {
      if (path.includes("/counters/")) counted.push(path);
      return super.attribute(path);
    }
  }
  let nowMs = 0;
  const sysfs = new Counting("captured", parseSysfsCapture(tsv, "class/infiniband/"));
  const watch = new RdmaWatch(sysfs, () => nowMs);
  for (let round = 0; round < 3; round += 1) {
    await watch.refresh();
    nowMs += 60_000;
  }
  deepEqual(counted, ["class/infiniband/mlx5_0/ports/1/counters/link_downed"]);
  deepEqual(watch.problems(), []);
});

Deno.test("RdmaWatch reads through a recording what it reads itself", async () => {
  const tsv = Deno.readTextFileSync(new URL("roce-gid-table-host.tsv", FIXTURES));
  const recording = new RecordingSysfs(
    new CapturedSysfs("captured", parseSysfsCapture(tsv, "class/infiniband/")),
  );
  const watch = new RdmaWatch(recording, () => 0);
  await watch.refresh();
  const again = new RdmaWatch(new CapturedSysfs("again", recording.capture()), () => 0);
  await again.refresh();
  deepEqual(again.reading, watch.reading);
  equal(watch.reading.kind, "devices");
});
