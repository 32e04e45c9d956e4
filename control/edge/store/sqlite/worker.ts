/**
 * What takes long with SQLite, beside everything else: SQLite answers while its caller waits, and
 * control must not wait. The Worker's source is a function of this file, handed over as text, so that
 * it needs no file of its own: neither a release has one, nor may control read the program.
 */
import { HeddleError } from "@heddle/proto/error";
import { z } from "zod";

/** Values by name, as in ":from". */
export interface Statement {
  readonly sql: string;
  readonly values: Readonly<Record<string, string | number | null>>;
}

type Task =
  | { readonly kind: "all"; readonly path: string; readonly statement: Statement }
  /** Everything of `path` becomes everything of `to`, at once for whoever reads there. */
  | { readonly kind: "copy"; readonly path: string; readonly to: string };

const answerSchema = z.union([
  z.object({ rows: z.array(z.record(z.string(), z.unknown())) }),
  z.object({ error: z.string() }),
]);
export type Row = Readonly<Record<string, unknown>>;

/** How long the Worker waits for a writer, in ms, before that is an error. */
const BUSY_MS = 5_000;

/** Runs in the Worker. Must use nothing from outside of itself. */
function serve(busyMs: number): void {
  globalThis.addEventListener("message", async (event: Event) => {
    if (!(event instanceof MessageEvent)) return;
    const { DatabaseSync, backup } = await import("node:sqlite");
    const [port] = event.ports;
    const task: Task = event.data;
    try {
      const readOnly = task.kind === "all";
      const database = new DatabaseSync(task.path, { readOnly, timeout: busyMs });
      try {
        if (task.kind === "copy") await backup(database, task.to, { rate: 2 ** 30 });
        const { sql, values } = task.kind === "all" ? task.statement : { sql: "", values: {} };
        const rows = sql === "" ? [] : database.prepare(sql).all({ ...values });
        port?.postMessage({ rows: rows.map((row) => ({ ...row })) });
      } finally {
        database.close();
      }
    } catch (error) {
      port?.postMessage({ error: error instanceof Error ? error.message : String(error) });
    }
  });
}

/** One Worker, started when it is first needed. What it was asked and has not done ends with it. */
export class SqliteWorker {
  #worker: Worker | undefined;
  readonly #waiting = new Set<(error: HeddleError) => void>();

  /** The rows of a statement that only reads. Throws `system`. */
  async all(path: string, statement: Statement): Promise<readonly Row[]> {
    return await this.#run({ kind: "all", path, statement });
  }

  /** Throws `system`; then `to` is as it was. */
  async copy(path: string, to: string): Promise<void> {
    await this.#run({ kind: "copy", path, to });
  }

  close(): void {
    this.#worker?.terminate();
    this.#worker = undefined;
    const closed = new HeddleError("unavailable", "The store was closed meanwhile");
    for (const fail of this.#waiting) fail(closed);
  }

  async #run(task: Task): Promise<readonly Row[]> {
    const worker = this.#worker ??= start();
    const { port1, port2 } = new MessageChannel();
    const { promise, resolve, reject } = Promise.withResolvers<unknown>();
    port1.onmessage = ({ data }) => resolve(data);
    this.#waiting.add(reject);
    try {
      worker.postMessage(task, [port2]);
      const answer = answerSchema.parse(await promise);
      if ("rows" in answer) return answer.rows;
      throw new HeddleError("system", answer.error);
    } finally {
      this.#waiting.delete(reject);
      port1.close();
    }
  }
}

function start(): Worker {
  return new Worker(`data:text/javascript,${encodeURIComponent(`(${serve})(${BUSY_MS})`)}`, {
    type: "module",
  });
}
