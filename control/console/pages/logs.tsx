/** The log of a shard, a replica's leader, or a node's agent, followed as it grows. */
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { post, wordsOf } from "../call.ts";
import { frameOf, readMessages } from "../connect_stream.ts";
import type { Live } from "../follow.ts";
import { useMay } from "../parts/action.tsx";
import { Notice } from "../parts/notice.tsx";
import { hrefOf } from "../route.ts";
import { byName } from "../words.ts";

/** History to begin with, and lines that are kept on the page. */
const TAIL_LINES = 500;
const LINES_MAX = 5_000;

/** Lines that come in a burst are drawn together, in ms. */
const DRAW_EVERY_MS = 100;

export function Logs(
  { live, source, name }: {
    readonly live: Live;
    readonly source: string | undefined;
    readonly name: string | undefined;
  },
) {
  if (!useMay("operator")) return <p>Logs are for operators: a viewer may not read them.</p>;
  return (
    <>
      <header class="page">
        <h1>{name === undefined ? "Logs" : `Log of ${name}`}</h1>
        <Choice
          live={live}
          chosen={source === undefined ? "" : hrefOf("logs", source, name ?? "")}
        />
      </header>
      {name === undefined || (source !== "shard" && source !== "node")
        ? <p class="quiet">Choose whose log to read.</p>
        : <Lines key={`${source} ${name}`} source={source} name={name} />}
    </>
  );
}

function Choice({ live, chosen }: { readonly live: Live; readonly chosen: string }) {
  // What is attached has no log here.
  const own = [...live.replicas.values()].filter(({ attached }) => attached === undefined);
  const shards = own.flatMap(({ model, shards }) =>
    shards.map(({ id, node }) => ({
      href: hrefOf("logs", "shard", id),
      text: `${id} (${model}, ${node})`,
    }))
  ).sort((a, b) => byName(a.text, b.text));
  const nodes = [...live.nodes].flatMap(([name, { attached }]) => attached ? [] : [name])
    .sort(byName).map((name) => ({ href: hrefOf("logs", "node", name), text: `agent of ${name}` }));
  const option = ({ href, text }: { readonly href: string; readonly text: string }) => (
    <option key={href} value={href} selected={href === chosen}>{text}</option>
  );
  return (
    <select
      aria-label="Whose log"
      onChange={(event) => {
        location.hash = event.currentTarget.value;
      }}
    >
      <option value="#/logs" selected={chosen === ""}>Whose log?</option>
      <optgroup label="Engines">{shards.map(option)}</optgroup>
      <optgroup label="Agents">{nodes.map(option)}</optgroup>
    </select>
  );
}

function Lines({ source, name }: { readonly source: "shard" | "node"; readonly name: string }) {
  const [lines, setLines] = useState<readonly string[]>([]);
  const [end, setEnd] = useState<{ readonly text: string; readonly bad: boolean } | undefined>();
  const [turn, setTurn] = useState(0);
  const [follow, setFollow] = useState(true);
  const box = useRef<HTMLPreElement>(null);
  useEffect(() => {
    setLines([]);
    setEnd(undefined);
    return readLog(source, name, {
      lines: (more) => setLines((before) => [...before, ...more].slice(-LINES_MAX)),
      ended: (text, bad) => setEnd({ text, bad }),
    });
  }, [source, name, turn]);
  useLayoutEffect(() => {
    if (follow && box.current !== null) box.current.scrollTop = box.current.scrollHeight;
  }, [lines, follow]);
  return (
    <>
      <div class="buttons">
        <label class="check">
          <input
            type="checkbox"
            checked={follow}
            onChange={(event) => setFollow(event.currentTarget.checked)}
          />
          Keep the end in view
        </label>
        {end === undefined
          ? <span class="quiet">following</span>
          : <button type="button" onClick={() => setTurn(turn + 1)}>Read again</button>}
      </div>
      {end === undefined ? null : <Notice tone={end.bad ? "bad" : "quiet"}>{end.text}</Notice>}
      <pre class="log" ref={box} tabIndex={0} aria-label={`Log of ${name}`}>{lines.join("\n")}</pre>
    </>
  );
}

function readLog(
  source: "shard" | "node",
  name: string,
  to: {
    readonly lines: (lines: readonly string[]) => void;
    readonly ended: (text: string, bad: boolean) => void;
  },
): () => void {
  const stop = new AbortController();
  let waiting: string[] = [];
  const draw = () => {
    if (waiting.length > 0) to.lines(waiting);
    waiting = [];
  };
  const timer = setInterval(draw, DRAW_EVERY_MS);
  const read = async () => {
    const asked = { [source === "shard" ? "shardId" : "node"]: name };
    const answer = await post(
      "/console/rpc/heddle.v1.AdminService/ReadLogs",
      frameOf({ ...asked, tailLines: TAIL_LINES, follow: true }),
      { headers: { "content-type": "application/connect+json" }, signal: stop.signal },
    );
    if (answer.body === null) return;
    await readMessages(answer.body, (message) => waiting.push(...textsOf(message)));
  };
  read().then(() => "The log has ended.", (error: unknown) => {
    if (!stop.signal.aborted) to.ended(wordsOf(error), true);
  }).then((text) => {
    clearInterval(timer);
    draw();
    if (text !== undefined && !stop.signal.aborted) to.ended(text, false);
  });
  return () => {
    stop.abort();
    clearInterval(timer);
  };
}

function textsOf(message: unknown): readonly string[] {
  if (typeof message !== "object" || message === null || !("lines" in message)) return [];
  if (!Array.isArray(message.lines)) return [];
  return message.lines.map((line: { readonly text?: string }) => line.text ?? "");
}
