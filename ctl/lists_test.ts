/** Lists as whole commands give them, against a control that answers. */
import { deepEqual, equal, match } from "node:assert/strict";
import { AdminService } from "@heddle/proto/gen/admin";
import { InstallState } from "@heddle/proto/gen/engines";
import { CertificateService } from "@heddle/proto/gen/identity";
import { WeightsService, WeightsState } from "@heddle/proto/gen/weights";
import { HeddleError } from "@heddle/proto/error";
import { everyFormOf } from "./golden_fake.ts";
import { runApp, withControl } from "./testing/app_fake.ts";

Deno.test("engines: those that run, and those that are on their way or failed", async () => {
  const engine = { name: "vllm", version: "0.33.0", path: "/opt/vllm-0.33.0/bin/vllm" };
  const installs = [
    { name: "vllm", version: "0.33.0", wanted: true, state: InstallState.INSTALLED },
    {
      name: "sglang",
      version: "0.5",
      wanted: true,
      state: InstallState.FAILED,
      reason: "driver_too_old",
      message: "it needs\n525",
      retryInMs: 60_000n,
    },
  ];
  const nodes = [{ name: "n1", inventory: { engines: [engine], installs: { installs } } }];
  await withControl(
    (router) => router.service(AdminService, { listNodes: () => ({ nodes }) }),
    async (run) => {
      const forms = await everyFormOf(run, ["engines"]);
      const why = "driver_too_old: it needs 525: tried again in 1m";
      equal(
        forms.table,
        "NODE  ENGINE  VERSION  STATE   WANTED  REASON\n" +
          "n1    vllm    0.33.0   works   yes     -\n" +
          `n1    sglang  0.5      failed  yes     ${why}\n`,
      );
      match(forms.wide, /^NODE .* REASON {43}PATH\nn1 .* - {48}\/opt\/vllm-0\.33\.0\/bin\/vllm\n/);
      equal(
        forms.pipe,
        "NODE\tENGINE\tVERSION\tSTATE\tWANTED\tREASON\nn1\tvllm\t0.33.0\tworks\tyes\t-\n" +
          `n1\tsglang\t0.5\tfailed\tyes\t${why}\n`,
      );
      deepEqual(JSON.parse(forms.json)[0], {
        node: "n1",
        engine: "vllm",
        version: "0.33.0",
        state: "works",
        wanted: true,
        reason: "",
        path: engine.path,
      });
      match(forms.yaml, /^- node: n1\n {2}engine: vllm\n {2}version: 0\.33\.0\n/);
      match(
        forms.csv,
        /^node,engine,version,state,wanted,reason,path\r\nn1,vllm,0\.33\.0,works,true,,/,
      );
    },
  );
});

Deno.test("routers: who carries what, and a certificate that was not renewed", async () => {
  const routers = [
    {
      name: "r1",
      leased: true,
      current: true,
      inFlight: 3,
      waiting: 1,
      lastReportMs: 1_000n,
      version: "0.1.0",
      applied: { term: 2n, sequence: 7n },
    },
    { name: "r2", leased: true, certificateDaysLeft: 3, lastReportMs: 2_000n },
    { name: "r3", lastReportMs: 61_000n },
  ];
  await withControl(
    (router) => router.service(AdminService, { listRouters: () => ({ routers }) }),
    async (run) => {
      const forms = await everyFormOf(run, ["routers"]);
      equal(
        forms.table,
        "ROUTER  STATE        IN FLIGHT  WAITING  LAST REPORT  VERSION\n" +
          "r1      current      3          1        1s ago       0.1.0\n" +
          "r2      catching up  0          0        2s ago       -\n" +
          "r3      lease ended  0          0        1m1s ago     -\n" +
          "\nProblems:\n  r2: its certificate ends in 3 days and was not renewed → see the log of its " +
          "agent or router; ansible-playbook site.yml renews it\n",
      );
      match(forms.wide, /^.* VERSION {2}APPLIED\nr1 .* 0\.1\.0 {4}2\.7\n/);
      equal(
        forms.pipe,
        "ROUTER\tSTATE\tIN FLIGHT\tWAITING\tLAST REPORT\tVERSION\nr1\tcurrent\t3\t1\t1s ago\t0.1.0\n" +
          "r2\tcatching up\t0\t0\t2s ago\t-\nr3\tlease ended\t0\t0\t1m1s ago\t-\n",
      );
      const [first, second] = JSON.parse(forms.json);
      deepEqual([first.name, first.in_flight, first.certificate_days_left], ["r1", 3, null]);
      deepEqual(first.applied, { term: 2, sequence: 7 });
      equal(second.certificate_days_left, 3);
      match(forms.yaml, /^- name: r1\n/);
      match(forms.csv, /^name,.*\r\nr1,/);
    },
  );
});

Deno.test("weights list: what is there, what comes, with a bar on a terminal, and what failed", async () => {
  const want = { source: "hf://acme/m", version: "0123456789abcdef" };
  const weights = [
    {
      node: "n1",
      models: ["m", "m2"],
      weights: {
        want,
        state: WeightsState.READY,
        sizeBytes: 3n << 30n,
        doneBytes: 3n << 30n,
        shardIds: ["m-1/0"],
        folder: "acme-m",
        path: "/w/acme-m",
      },
    },
    {
      node: "n2",
      models: ["m"],
      weights: {
        want,
        state: WeightsState.FETCHING,
        sizeBytes: 4n << 30n,
        doneBytes: 1n << 30n,
        bytesPerSecond: 1n << 20n,
        secondsLeft: 60n,
      },
    },
    {
      node: "n3",
      weights: { want, state: WeightsState.FAILED, reason: "disk_full", message: "1 GiB free" },
    },
  ];
  await withControl(
    (router) => router.service(WeightsService, { listWeights: () => ({ weights }) }),
    async (run) => {
      const forms = await everyFormOf(run, ["weights"]);
      const share = "1.0 GiB of 4.0 GiB (25 %), 1.0 MiB/s, 1m left";
      const bar = `[#####...............] ${share}`;
      const left = (text: string) => text.padEnd(bar.length);
      equal(
        forms.table,
        `NODE  SOURCE       VERSION       STATE     ${left("SIZE")}  MODELS  USED BY  REASON\n` +
          `n1    hf://acme/m  0123456789ab  ready     ${left("3.0 GiB")}  m, m2   m-1/0    -\n` +
          `n2    hf://acme/m  0123456789ab  fetching  ${bar}  m       -        -\n` +
          `n3    hf://acme/m  0123456789ab  failed    ${left("-")}  -       -        ` +
          "disk_full: 1 GiB free\n",
      );
      match(forms.wide, /REASON {17}FOLDER {2}PATH\n.* acme-m {2}\/w\/acme-m\n/);
      match(
        forms.pipe,
        /\nn2\thf:\/\/acme\/m\t0123456789ab\tfetching\t1\.0 GiB of 4\.0 GiB \(25 %\)/,
      );
      deepEqual(
        JSON.parse(forms.json).map((row: Record<string, unknown>) => row["models"]),
        [["m", "m2"], ["m"], []],
      );
      match(forms.yaml, /^- node: n1\n {2}weights:\n {4}want:\n {6}source: hf:\/\/acme\/m\n/);
      match(forms.csv, /^node,weights,models\r\nn1,/);
    },
  );
});

Deno.test("ca struck: what was struck, by whom, and why", async () => {
  const strikes = [{ struck: "agent/n1", by: "ann", reason: "stolen", atMs: 1_800_000_000_000n }];
  await withControl(
    (router) => router.service(CertificateService, { listStrikes: () => ({ strikes }) }),
    async (run) => {
      const forms = await everyFormOf(run, ["ca", "struck"]);
      const table = "STRUCK    BY   AT                    REASON\n" +
        "agent/n1  ann  2027-01-15 08:00:00Z  stolen\n";
      deepEqual([forms.table, forms.wide], [table, table]);
      equal(forms.pipe, "STRUCK\tBY\tAT\tREASON\nagent/n1\tann\t2027-01-15 08:00:00Z\tstolen\n");
      deepEqual(JSON.parse(forms.json), [
        { struck: "agent/n1", by: "ann", reason: "stolen", at: "2027-01-15T08:00:00Z" },
      ]);
      equal(
        forms.yaml,
        "- struck: agent/n1\n  by: ann\n  reason: stolen\n  at: 2027-01-15T08:00:00Z\n",
      );
      equal(forms.csv, "struck,by,reason,at\r\nagent/n1,ann,stolen,2027-01-15T08:00:00Z\r\n");
    },
  );
});

Deno.test("logs NODE: the list of its logs in every form; a log has its lines and no other", async () => {
  const asked: string[] = [];
  const admin = {
    listReplicas: () => ({}),
    listNodes: () => ({ nodes: [{ name: "n1" }] }),
    async *readLogs({ nodeSource }: { readonly nodeSource: string }) {
      asked.push(nodeSource);
      await Promise.resolve();
      const texts = nodeSource === "sources"
        ? ["agent\tthe agent's own", "m-1/0\tshard"]
        : ["a\tline"];
      yield { lines: texts.map((text) => ({ text })) };
    },
  };
  await withControl((router) => router.service(AdminService, admin), async (run) => {
    const forms = await everyFormOf(run, ["logs", "n1"]);
    const table = "SOURCE  WHAT\nagent   the agent's own\nm-1/0   shard\n";
    deepEqual([forms.table, forms.wide], [table, table]);
    equal(forms.pipe, "SOURCE\tWHAT\nagent\tthe agent's own\nm-1/0\tshard\n");
    deepEqual(JSON.parse(forms.json), [
      { name: "agent", words: "the agent's own" },
      { name: "m-1/0", words: "shard" },
    ]);
    equal(forms.yaml, "- name: agent\n  words: the agent's own\n- name: m-1/0\n  words: shard\n");
    equal(forms.csv, "name,words\r\nagent,the agent's own\r\nm-1/0,shard\r\n");
    equal((await run(["logs", "n1", "agent"])).out, "a\tline\n");
    asked.length = 0;
    for (const form of [["-o", "json"], ["--json"]]) {
      const { err, failed } = await run(["logs", "n1", "agent", ...form]);
      match(err, /^A log has no other form than its lines: leave -o out/);
      equal(failed, true);
    }
    deepEqual(asked, []);
  });
});

Deno.test("every list is drawn anew with --watch, also of what lies on this machine", async () => {
  const away = () => Promise.reject(new HeddleError("unavailable", "Away"));
  for (const line of ["nodes", "engines", "routers", "weights", "ca struck", "config list"]) {
    const interrupt = new AbortController();
    const { out, failed } = await runApp([...line.split(" "), "--watch"], {
      loadContext: away,
      loadConfig: away,
      signal: interrupt.signal,
      onOut: () => interrupt.abort(),
    });
    // What does not watch fails with it instead.
    deepEqual([line, out, failed], [line, "Away\n\n", false]);
  }
});

Deno.test("ca status --watch draws the certificates, and ends with Ctrl-C", async () => {
  const authority = await Deno.makeTempDir({ prefix: "heddle-ca-" });
  try {
    const folders = { authority, certificates: undefined };
    await runApp(["ca", "init", "--cluster", "prod"], { folders });
    const interrupt = new AbortController();
    const { out } = await runApp(["ca", "status", "-w"], {
      folders,
      terminal: true,
      signal: interrupt.signal,
      onOut: (text) => text.includes("ROLE") && interrupt.abort(),
    });
    equal(out.startsWith("\u001b[2J\u001b[HROLE "), true, out);
    match(out, /\nroot .*\nroot-key\.pem lies in /s);
  } finally {
    await Deno.remove(authority, { recursive: true });
  }
});
