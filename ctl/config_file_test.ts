import { deepEqual, equal, match, rejects, throws } from "node:assert/strict";
import { contextListing } from "./commands/config/list.ts";
import { formatContext } from "./commands/config/show.ts";
import { configSchema, findConfig } from "./config.ts";
import { useContext, withCurrent } from "./config_file.ts";
import { everyForm } from "./golden_fake.ts";

const TEXT = `# where the clusters are
current: lab # for now
contexts:
  - name: lab
    url: http://127.0.0.1:9090
  - name: prod
    url: [https://a:9090, https://b:9090]
    tls: { certificate_file: /c.pem, key_file: /k.pem, ca_file: /ca.pem }
    endpoint: { url: https://llm.example.org }
  - name: far
    url: https://far:9090
    tls: { ca_file: /ca.pem }
    token_file: /t
`;

async function place() {
  const folder = await Deno.makeTempDir();
  const file = `${folder}/config.yaml`;
  await Deno.writeTextFile(file, TEXT, { mode: 0o640 });
  return {
    file,
    at: () => findConfig({ named: file, userConfig: undefined, repository: undefined }),
    [Symbol.asyncDispose]: () => Deno.remove(folder, { recursive: true }),
  };
}

Deno.test("config list: every context in every form, and which one counts", async () => {
  await using made = await place();
  const at = { ...await made.at(), file: "/home/ann/config.yaml" };
  const forms = everyForm(contextListing(at));
  equal(
    forms.table,
    "CURRENT  CONTEXT  CONTROL                         SHOWS        ENDPOINT\n" +
      "*        lab      http://127.0.0.1:9090           nothing      -\n" +
      "-        prod     https://a:9090, https://b:9090  certificate  https://llm.example.org\n" +
      "-        far      https://far:9090                token        -\n" +
      "\nFrom /home/ann/config.yaml\n",
  );
  match(forms.wide, /^CURRENT .* FILE\n.*\n.*\/c\.pem\n.*\/t\n/);
  equal(
    forms.pipe.split("\n")[2],
    "-\tprod\thttps://a:9090, https://b:9090\tcertificate\thttps://llm.example.org",
  );
  deepEqual(JSON.parse(forms.json)[0], {
    name: "lab",
    current: true,
    url: ["http://127.0.0.1:9090"],
    shows: "nothing",
    endpoint: null,
  });
  match(forms.yaml, /^- name: lab\n {2}current: true\n/);
  match(forms.csv, /^name,current,url,shows,endpoint\r\nlab,true,/);
});

Deno.test("config show: the current context, or another, with the file it is in", async () => {
  await using made = await place();
  const at = { ...await made.at(), file: "/f" };
  equal(
    formatContext(at, { form: "table" }),
    "file: /f\ncurrent: true\nname: lab\nurl: http://127.0.0.1:9090\n",
  );
  deepEqual(JSON.parse(formatContext(at, { name: "far", form: "json" })), {
    file: "/f",
    current: false,
    name: "far",
    url: "https://far:9090",
    tls: { ca_file: "/ca.pem" },
    token_file: "/t",
  });
  throws(
    () => formatContext(at, { name: "x", form: "json" }),
    /No context "x" in \/f: it has lab, /,
  );
});

Deno.test("config use: changes one line, keeps the file's mode, and says what is wrong", async () => {
  await using made = await place();
  await useContext(await made.at(), "prod");
  equal(
    await Deno.readTextFile(made.file),
    TEXT.replace("current: lab #", "current: prod #"),
  );
  equal(((await Deno.stat(made.file)).mode ?? 0) & 0o777, 0o640);
  await rejects(
    useContext(await made.at(), "nope"),
    /No context "nope" in .*: it has lab, prod, far/,
  );
  const config = configSchema.parse({
    current: "a",
    contexts: [{ name: "a", url: "http://[::1]:1" }],
  });
  await rejects(useContext({ file: `${made.file}/x`, config }, "a"), /Cannot change .*--context a/);
  throws(() => withCurrent(TEXT, { file: "f", config }, "b"), /it has a/);
});
