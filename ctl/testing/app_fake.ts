/** Command lines run for tests without a process around them, and a control that they talk to. */
import type { ConnectRouter } from "@connectrpc/connect";
import { run } from "@stricli/core";
import { startRpcServer } from "@heddle/common/rpc_server";
import { app } from "../app.ts";
import type { CtlContext } from "../command.ts";

export interface Ran {
  readonly out: string;
  readonly err: string;
  readonly failed: boolean;
  /** As the library has it: `main.ts` makes its own of it. */
  readonly code: number;
}

type Surroundings =
  & Partial<Pick<CtlContext, "ask" | "loadContext" | "loadConfig" | "signal" | "folders">>
  & {
    /** Somebody looks at the output. */
    readonly terminal?: boolean;
    readonly stdin?: string;
    /** Called with what is written to standard output. */
    readonly onOut?: (text: string) => void;
  };

/** Without `loadContext` every call of control fails with this. */
export const REACHED = "control is asked";

/** Runs one command line, as `heddle` would. */
export async function runApp(args: readonly string[], around: Surroundings = {}): Promise<Ran> {
  const { terminal = false, stdin = "", onOut } = around;
  let out = "", err = "";
  let failed = false;
  const process = {
    stdout: {
      write: (text: string) => {
        out += text;
        onOut?.(text);
      },
    },
    stderr: { write: (text: string) => void (err += text) },
    env: { NO_COLOR: "1" },
    exitCode: undefined as number | string | null | undefined,
  };
  const context: CtlContext = {
    process,
    io: { terminal, color: false, out: process.stdout.write, err: process.stderr.write },
    signal: around.signal ?? new AbortController().signal,
    loadContext: around.loadContext ?? (() => Promise.reject(new Error(REACHED))),
    loadConfig: around.loadConfig ?? (() => Promise.reject(new Error(REACHED))),
    folders: around.folders ?? { authority: "", certificates: undefined },
    readStdin: () => Promise.resolve(stdin),
    bytes: { in: () => new Blob([stdin]).stream(), out: () => {} },
    ask: around.ask,
    fail: () => failed = true,
  };
  await run(app, args, context);
  const code = Number(process.exitCode ?? 0);
  return { out, err, failed: failed || code !== 0, code };
}

/** A control that answers as `routes` say, for as long as `use` runs. */
export async function withControl(
  routes: (router: ConnectRouter) => void,
  use: (run: typeof runApp) => Promise<void>,
): Promise<void> {
  const server = await startRpcServer({
    listen: { host: "127.0.0.1", port: 0 },
    tls: undefined,
    routes,
  });
  const url = `http://127.0.0.1:${server.address.port}`;
  const loadContext = () => Promise.resolve({ name: "test", url });
  try {
    await use((args, around) => runApp(args, { loadContext, ...around }));
  } finally {
    await server.close(0);
  }
}
