import { deepEqual, equal, match, ok, rejects } from "node:assert/strict";
import { createRouterTransport } from "@connectrpc/connect";
import { RenewalService } from "@heddle/proto/gen/identity";
import { Registry } from "prom-client";
import type { Role } from "./identity.ts";
import {
  BACKDATE_MS,
  createIssuing,
  createLeaf,
  createRoot,
  type KeyPairPem,
  readCertificate,
  signRequest,
} from "./pki.ts";
import { measureExpiry, renewalDueAt, renewIfDue, watchFiles } from "./renewal.ts";

const DAY_MS = 86_400_000;
const now = Date.now();

interface Place extends AsyncDisposable {
  readonly files: { certificate_file: string; key_file: string; ca_file: string };
  readonly fleet: KeyPairPem;
}

/** A folder with an agent's certificate of 90 days, as the authority of the fleet makes them. */
async function place(): Promise<Place> {
  const folder = await Deno.makeTempDir();
  const options = { cluster: "test", validMs: 700 * DAY_MS, now };
  const root = await createRoot(options);
  const fleet = await createIssuing(root, { ...options, fleet: true });
  const leaf = await createLeaf(fleet, {
    identity: { cluster: "test", role: "agent", name: "n1" },
    hosts: ["n1"],
    validMs: 90 * DAY_MS,
    now,
  });
  const files = {
    certificate_file: `${folder}/cert.pem`,
    key_file: `${folder}/key.pem`,
    ca_file: `${folder}/ca.pem`,
  };
  await Deno.writeTextFile(files.certificate_file, leaf.certificatePem);
  await Deno.writeTextFile(files.key_file, leaf.keyPem);
  await Deno.writeTextFile(files.ca_file, root.certificatePem);
  return {
    files,
    fleet,
    [Symbol.asyncDispose]: () => Deno.remove(folder, { recursive: true }),
  };
}

/** A control that signs whatever it is asked for, for this holder. */
function signing(fleet: KeyPairPem, holder: { role: Role; name: string }, at: number) {
  return createRouterTransport((router) =>
    router.service(RenewalService, {
      renew: async ({ requestPem }) => {
        const leaf = await signRequest(fleet, requestPem, {
          identity: { cluster: "test", ...holder },
          hosts: ["n1"],
          validMs: 90 * DAY_MS,
          now: at,
        });
        return { chainPem: `${leaf}\n${fleet.certificatePem}` };
      },
    })
  );
}

const OWN = { role: "agent", name: "n1" } as const;

Deno.test("renewIfDue() renews after two thirds of the life, and not before", async () => {
  await using here = await place();
  const read = () => Deno.readTextFile(here.files.certificate_file);
  const before = await read();
  for (const [days, renews] of [[0, false], [59, false], [66, true]] as const) {
    const at = now + days * DAY_MS;
    const transport = signing(here.fleet, OWN, at);
    equal(await renewIfDue({ files: here.files, transport, now: at }), renews, `day ${days}`);
  }
  const [was, is] = [readCertificate(before), readCertificate(await read())];
  deepEqual(is.identity, was.identity);
  ok(is.notAfter > was.notAfter);
  equal(((await Deno.stat(here.files.certificate_file)).mode ?? 0) & 0o777, 0o644);
  const transport = signing(here.fleet, OWN, now);
  equal(await renewIfDue({ files: here.files, transport, now: now + 67 * DAY_MS }), false);
});

Deno.test("renewIfDue() keeps what it has when it is given another's, or nothing can be written", async () => {
  await using here = await place();
  const at = now + 80 * DAY_MS;
  const before = await Deno.readTextFile(here.files.certificate_file);
  const strangers = [
    signing(here.fleet, { role: "agent", name: "n2" }, at),
    signing(here.fleet, { role: "router", name: "n1" }, at),
    createRouterTransport((router) =>
      router.service(RenewalService, { renew: () => ({ chainPem: before }) })
    ),
  ];
  for (const transport of strangers) {
    await rejects(renewIfDue({ files: here.files, transport, now: at }));
    equal(await Deno.readTextFile(here.files.certificate_file), before);
  }
});

Deno.test("renewalDueAt() spreads a fleet whose certificates were made at one time", () => {
  const made = { cluster: undefined, identity: undefined, hosts: [] };
  const issuedAt = now + BACKDATE_MS;
  const times = Array.from({ length: 50 }, (_, index) =>
    renewalDueAt({
      ...made,
      serial: `${index}f3`,
      notBefore: now,
      notAfter: issuedAt + 3_000,
    }) - issuedAt);
  ok(Math.min(...times) >= 2_000 && Math.max(...times) <= 2_151, `${times}`);
  ok(new Set(times).size > 20);
});

Deno.test("measureExpiry() tells the end of what lies in the file now, and 0 for garbage", async () => {
  await using here = await place();
  const registry = new Registry();
  measureExpiry(registry, here.files);
  const { notAfter } = readCertificate(await Deno.readTextFile(here.files.certificate_file));
  const value = async () =>
    /^heddle_certificate_expiry_timestamp_seconds (\S+)$/m.exec(await registry.metrics())?.[1];
  equal(Number(await value()), notAfter / 1_000);
  await Deno.writeTextFile(here.files.certificate_file, "garbage");
  equal(await value(), "0");
  match(await registry.metrics(), /# TYPE heddle_certificate_expiry_timestamp_seconds gauge/);
});

Deno.test("watchFiles() tells each time that a file is another, also one that comes and goes", async () => {
  const folder = await Deno.makeTempDir();
  try {
    const paths = ["cert.pem", "key.pem"].map((name) => `${folder}/${name}`);
    await Deno.writeTextFile(paths[0] ?? "", "one");
    let told = Promise.withResolvers<void>();
    let times = 0;
    const changed = () => {
      times++;
      told.resolve();
      return Promise.resolve();
    };
    using _watching = await watchFiles(paths, changed, 1);
    const changes: readonly (() => Promise<void>)[] = [
      () => Deno.writeTextFile(`${paths[1]}`, "key"),
      () => Deno.rename(`${paths[1]}`, `${paths[0]}`),
    ];
    for (const [index, change] of changes.entries()) {
      await change();
      await told.promise;
      told = Promise.withResolvers();
      ok(times > index);
    }
  } finally {
    await Deno.remove(folder, { recursive: true });
  }
});
