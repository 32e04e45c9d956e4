/** Who scrapes an agent or a router, and is struck: refused by both, at once and for good. */
import { equal, match } from "node:assert/strict";
import https from "node:https";
import { join } from "node:path";
import tls from "node:tls";
import { readTlsFiles, type TlsMaterial } from "@heddle/common/mtls_files";
import { readCertificate } from "@heddle/common/pki";
import { issueCertificate, openAuthority } from "../../tools/up/layout/certificates.ts";
import { freePorts, type RunningProcess, startProgram } from "../router_only/processes.ts";
import { eventually, Heddle, reserve } from "./heddle.ts";

/** Starts a program of its own beside the fleet; where it serves metrics with certificates. */
interface Scraped {
  readonly secure: number;
  start(): Promise<RunningProcess>;
}

type Authority = Awaited<ReturnType<typeof openAuthority>>;
type Place = Awaited<ReturnType<typeof reserve>>;

async function layAgent(place: Place, authority: Authority): Promise<Scraped> {
  const folder = join(place.state, "scraped-agent");
  const [plain = 0, secure = 0] = freePorts(2);
  const config = {
    node: "scraped",
    control: [`https://127.0.0.1:${place.port + 2}`],
    address: "127.0.0.1",
    state_directory: folder,
    metrics: { listen: `127.0.0.1:${plain}`, tls_listen: `127.0.0.1:${secure}` },
    launcher: "process",
    tls: await issueCertificate(authority, { role: "agent", name: "scraped", folder }),
  };
  return lay("heddle-agent", { folder, config, plain, secure, flags: ["--nvidia-smi", "none"] });
}

async function layRouter(place: Place, authority: Authority): Promise<Scraped> {
  const folder = join(place.state, "scraped-router");
  const [plain = 0, secure = 0, listen = 0] = freePorts(3);
  const config = {
    name: "scraped/1",
    listen: `127.0.0.1:${listen}`,
    admin: { listen: `127.0.0.1:${plain}`, tls_listen: `127.0.0.1:${secure}` },
    control: {
      urls: [`https://127.0.0.1:${place.port + 2}`],
      tls: await issueCertificate(authority, { role: "router", name: "scraped", folder }),
    },
    state_directory: folder,
    keys: { policy: "open" },
  };
  return lay("heddle-router", { folder, config, plain, secure });
}

async function lay(launcher: string, parts: {
  readonly folder: string;
  readonly config: unknown;
  readonly plain: number;
  readonly secure: number;
  readonly flags?: readonly string[];
}): Promise<Scraped> {
  const { folder, plain, secure, flags = [] } = parts;
  const file = join(folder, "program.yaml");
  await Deno.writeTextFile(file, JSON.stringify(parts.config));
  return {
    secure,
    start: () =>
      startProgram(launcher, ["--config", file, ...flags], {
        url: `http://127.0.0.1:${plain}`,
        probe: `http://127.0.0.1:${plain}/health`,
        env: { HEDDLE_STATE: folder },
      }),
  };
}

function scrape(port: number, shown: TlsMaterial): Promise<number | string> {
  return new Promise((resolve) => {
    const options = { host: "127.0.0.1", port, path: "/metrics", agent: false, ...shown };
    https.get(options, (response) => {
      response.resume().on("end", () => resolve(response.statusCode ?? 0));
    }).on("error", () => resolve("refused"));
  });
}

/** A connection that stays, with one request answered on it; resolves `ended` when it ends. */
async function keep(port: number, shown: TlsMaterial): Promise<{ ended: Promise<void> }> {
  const socket = tls.connect({ host: "127.0.0.1", port, ...shown });
  socket.on("error", () => {});
  const ended = new Promise<void>((resolve) => socket.on("close", () => resolve()));
  const heard = new Promise<string>((resolve) => socket.once("data", (it) => resolve(`${it}`)));
  socket.write("GET /health HTTP/1.1\r\nhost: a\r\n\r\n");
  match(await heard, /^HTTP\/1.1 200 /);
  return { ended };
}

Deno.test("a monitor that is struck scrapes no agent and no router, also after their restart without control", async () => {
  await using place = await reserve();
  const heddle = await Heddle.start(place);
  await using running = new AsyncDisposableStack();
  running.use(heddle);
  const authority = await openAuthority(join(place.state, "ca"));
  const monitorOf = async (name: string) =>
    await readTlsFiles(
      await issueCertificate(authority, {
        role: "monitor",
        name,
        folder: join(place.state, "monitors", name),
      }),
    );
  const [thief, honest] = [await monitorOf("thief"), await monitorOf("honest")];
  const both = [await layAgent(place, authority), await layRouter(place, authority)];
  const programs = await Promise.all(both.map(({ start }) => start()));
  for (const program of programs) running.use(program);
  const kept = await Promise.all(both.map(({ secure }) => keep(secure, thief)));
  const { serial } = readCertificate(thief.cert);
  const struck = await heddle.ctl("ca", "strike", serial, "--reason", "lost", "--yes");
  equal(struck.code, 0, struck.stderr);
  await Promise.all(kept.map(({ ended }) => ended));
  const verdicts = (shown: TlsMaterial) =>
    Promise.all(both.map(({ secure }) => scrape(secure, shown)));
  equal(String(await verdicts(thief)), "403,403");
  equal(String(await verdicts(honest)), "200,200");
  for (const program of programs) program.signal("SIGHUP");
  equal(String(await verdicts(thief)), "403,403");
  for (const program of programs) program.signal("SIGTERM");
  await Promise.all(programs.map(({ exited }) => exited));
  await heddle.stop();
  for (const { start } of both) running.use(await start());
  await eventually("the honest one is let in", async () => {
    return String(await verdicts(honest)) === "200,200" ? true : undefined;
  });
  equal(String(await verdicts(thief)), "403,403");
});
