/** The feel of `up` and `down`: starts, refusals in one line, and nothing left behind. */
import { deepEqual, equal, match, ok } from "node:assert/strict";
import { join } from "node:path";
import { findByArgument } from "../../tools/up/processes/find_process.ts";
import { Heddle, isAlive, reserve, ROOT, runDown, runUp } from "./heddle.ts";

Deno.test("up prints how to use it, Ctrl-C stops all it started, and a second up works", async () => {
  await using place = await reserve();
  for (const turn of ["first", "second"]) {
    const heddle = await Heddle.start(place);
    match(heddle.output, /curl http:\/\/127\.0\.0\.1:\d+\/v1\/chat\/completions/, turn);
    match(heddle.output, /new OpenAI\(/);
    match(heddle.output, /task ctl nodes/);
    const console = /Console +(http:\S+)/.exec(heddle.output)?.[1] ?? "";
    match(await (await fetch(console)).text(), /<title>Heddle<\/title>/);
    const [replica] = await heddle.replicas();
    const engine = replica?.shards[0]?.pid ?? 0;
    ok(await isAlive(engine), `engine ${engine}`);
    const programs = [
      ...await heddle.pids("control"),
      ...await heddle.pids("router"),
    ];
    equal(await heddle.stop(), 0);
    match(heddle.output, /Stopping everything/);
    for (const pid of [engine, ...programs]) equal(await isAlive(pid), false, `pid ${pid}`);
  }
});

Deno.test("up --detach leaves it running, a second start says so, down stops it", async () => {
  await using place = await reserve();
  const flags = ["--ports-from", String(place.port), "--state", place.state];
  const started = await runUp(["--detach", ...flags]);
  try {
    equal(started.code, 0, started.stdout + started.stderr);
    match(started.stdout, /Heddle is up/);
    const answer = await fetch(`http://127.0.0.1:${place.port}/v1/models`);
    equal(answer.status, 200);
    await answer.body?.cancel();
    const again = await runUp(flags);
    equal(again.code, 1);
    match(again.stdout, /already up/);
  } finally {
    const down = await runDown(flags);
    equal(down.code, 0);
    match(down.stdout, /Stopped control/);
  }
  deepEqual(await findByArgument(join(place.state, "control", "control.yaml")), []);
  match((await runDown(flags)).stdout, /Nothing is up/);
});

Deno.test("down also stops what a killed up has left", async () => {
  await using place = await reserve();
  const flags = ["--ports-from", String(place.port), "--state", place.state];
  equal((await runUp(["--detach", ...flags])).code, 0);
  const [supervisor] = await findByArgument(place.state);
  for (const pid of await findByArgument(join(ROOT, "tools/up/main.ts"))) {
    if ((await findByArgument(place.state)).includes(pid)) Deno.kill(pid, "SIGKILL");
  }
  ok(supervisor);
  const down = await runDown(flags);
  equal(down.code, 0, down.stdout + down.stderr);
  match(down.stdout, /Stopped control/);
  for (const program of ["control", "router"]) {
    deepEqual(await findByArgument(join(place.state, program, `${program}.yaml`)), []);
  }
});

Deno.test("of two ups at one time on one directory one starts, and the other harms nothing", async () => {
  await using place = await reserve();
  const flags = ["--ports-from", String(place.port), "--state", place.state];
  const both = await Promise.all([runUp(["--detach", ...flags]), runUp(["--detach", ...flags])]);
  try {
    deepEqual(both.map(({ code }) => code).sort(), [0, 1], JSON.stringify(both));
    match(both.find(({ code }) => code === 1)?.stdout ?? "", /Cannot start: Heddle is already up/);
    const answer = await fetch(`http://127.0.0.1:${place.port}/v1/models`);
    equal(answer.status, 200);
    await answer.body?.cancel();
  } finally {
    match((await runDown(flags)).stdout, /Stopped control/);
  }
});

Deno.test("up and down know what goes on when their note is lost", async () => {
  await using place = await reserve();
  const flags = ["--ports-from", String(place.port), "--state", place.state];
  equal((await runUp(["--detach", ...flags])).code, 0);
  await Deno.writeTextFile(join(place.state, "up.json"), '{"stopPort":');
  const again = await runUp(flags);
  equal(again.code, 1);
  match(again.stdout, /already up/);
  match((await runDown(flags)).stdout, /Stopping the up with pid \d+/);
  for (const program of ["control", "router"]) {
    deepEqual(await findByArgument(join(place.state, program, `${program}.yaml`)), []);
  }
});

Deno.test("up says what a killed up has left, and down finds it without a note", async () => {
  await using place = await reserve();
  const flags = ["--ports-from", String(place.port), "--state", place.state];
  equal((await runUp(["--detach", ...flags])).code, 0);
  for (const pid of await findByArgument(place.state)) Deno.kill(pid, "SIGKILL");
  const again = await runUp(flags);
  equal(again.code, 1);
  match(again.stdout, /^Cannot start: an up that was killed left its .* task down --state .*\n$/);
  await Deno.remove(join(place.state, "up.json"));
  match((await runDown(flags)).stdout, /Stopped 1 engine/);
  deepEqual(await findByArgument(join(place.state, "control", "control.yaml")), []);
});

Deno.test("a port in use gives one clear line", async () => {
  await using place = await reserve();
  const holder = Deno.listen({ hostname: "127.0.0.1", port: place.port });
  try {
    const result = await runUp(["--ports-from", String(place.port), "--state", place.state]);
    equal(result.code, 1);
    match(result.stdout, new RegExp(`^Cannot start: port ${place.port} is in use .*\n$`));
    equal(result.stderr, "");
  } finally {
    holder.close();
  }
});

Deno.test("a directory that cannot be written gives one clear line", async () => {
  await using place = await reserve();
  const file = join(place.state, "file");
  await Deno.writeTextFile(file, "");
  for (const state of [join(file, "heddle"), "/dev/null/heddle"]) {
    for (const more of [[], ["--detach"]]) {
      const flags = ["--ports-from", String(place.port), "--state", state, ...more];
      const result = await runUp(flags);
      equal(result.code, 1);
      match(result.stdout, /^Cannot (write to|use) the state directory \S*\/heddle: .*\n$/);
      equal(result.stderr, "");
    }
  }
});

Deno.test("a directory that no permission can name gives one clear line", async () => {
  await using place = await reserve();
  for (const name of ["a,b", "a\nb"]) {
    const result = await runUp(["--state", join(place.state, name)]);
    equal(result.code, 2);
    match(result.stdout, /^Cannot use ".*": no comma or control character .*\n$/);
    equal(result.stderr, "");
  }
});

Deno.test("a broken catalog gives one line with file, line, column and path", async () => {
  await using place = await reserve();
  const catalog = join(place.state, "catalog.yaml");
  await Deno.writeTextFile(
    catalog,
    "models:\n  - name: a\n    source: x\n    profiles:\n      - name: p\n        tpp: 2\n",
  );
  const result = await runUp(["--state", join(place.state, "s"), "--catalog", catalog]);
  equal(result.code, 2);
  match(result.stdout, /^\S*catalog\.yaml:6:9: models\[0\]\.profiles\[0\]\.tpp: unknown key\n$/);
  equal(result.stderr, "");
});

Deno.test("flags that make no sense are refused with their name", async () => {
  for (
    const [flags, words] of [
      [["--ports-from", "x"], /--ports-from x/],
      [["--engine", "vllm"], /--engine vllm/],
      [["--engine", "llamacpp"], /--model/],
      [["--engine", "llamacpp", "--model", "/nonexistent.gguf"], /nonexistent\.gguf/],
      [["--nonsense"], /--nonsense/],
      [["--state", ""], /--state: it is empty/],
      [["--fleet", "/nonexistent.yaml"], /nonexistent\.yaml/],
    ] as const
  ) {
    const result = await runUp(flags);
    equal(result.code, 2, flags.join(" "));
    match(result.stdout, words);
    equal(result.stdout.trimEnd().split("\n").length, 1, result.stdout);
  }
});
