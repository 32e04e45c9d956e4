/** Tries a model: a conversation that is streamed, and how quick it was. */
import { useContext, useRef, useState } from "preact/hooks";
import { wordsOf } from "../call.ts";
import { chat, type ChatEnd, type Message } from "../chat.ts";
import type { Live } from "../follow.ts";
import { useMay, VisitContext } from "../parts/action.tsx";
import { Notice } from "../parts/notice.tsx";
import { duration } from "../words.ts";

export function Playground({ live }: { readonly live: Live }) {
  const visit = useContext(VisitContext);
  const may = useMay("operator");
  return (
    <>
      <header class="page">
        <h1>Playground</h1>
      </header>
      {visit?.playground !== true
        ? (
          <p>
            Control knows no endpoint to send requests to. Set <code>console.endpoint</code> in{" "}
            <code>control.yaml</code> to a router's OpenAI API, as in{" "}
            <code>https://models.example.com/v1</code>, and restart control.
          </p>
        )
        : may
        ? <Conversation live={live} />
        : <p>The playground is for operators.</p>}
    </>
  );
}

function Conversation({ live }: { readonly live: Live }) {
  const names = [...live.models].sort(([, a], [, b]) => a.order - b.order).map(([name]) => name);
  const [chosen, setChosen] = useState("");
  const [key, setKey] = useState("");
  const [text, setText] = useState("");
  const [messages, setMessages] = useState<readonly Message[]>([]);
  const [error, setError] = useState("");
  const [end, setEnd] = useState<ChatEnd | undefined>();
  const running = useRef<AbortController>(undefined);
  const [busy, setBusy] = useState(false);
  const model = chosen === "" ? names[0] ?? "" : chosen;
  const send = async (event: Event) => {
    event.preventDefault();
    if (busy || text.trim() === "") return;
    const asked: readonly Message[] = [...messages, { role: "user", content: text }];
    const stop = new AbortController();
    running.current = stop;
    setMessages([...asked, { role: "assistant", content: "" }]);
    setText("");
    setError("");
    setEnd(undefined);
    setBusy(true);
    try {
      setEnd(
        await chat(
          { model, messages: asked, key },
          (piece) => setMessages(withPiece(piece)),
          stop.signal,
        ),
      );
    } catch (error) {
      if (!stop.signal.aborted) setError(wordsOf(error));
    }
    setBusy(false);
  };
  return (
    <form class="chat" onSubmit={send}>
      <Choices names={names} model={model} onModel={setChosen} apiKey={key} onKey={setKey} />
      <Messages messages={messages} model={model} busy={busy} />
      {error === "" ? null : <Notice tone="bad">{error}</Notice>}
      {end === undefined ? null : <p class="quiet">{speedOf(end)}</p>}
      <label>
        Message
        <textarea
          rows={3}
          value={text}
          onInput={(event) => setText(event.currentTarget.value)}
          onKeyDown={(event) => {
            if (event.key === "Enter" && !event.shiftKey) send(event);
          }}
        />
      </label>
      <div class="buttons">
        <button type="submit" class="main" disabled={busy || model === ""}>Send</button>
        {busy ? <button type="button" onClick={() => running.current?.abort()}>Stop</button> : null}
        {messages.length > 0 && !busy
          ? <button type="button" onClick={() => setMessages([])}>Begin anew</button>
          : null}
      </div>
    </form>
  );
}

function Messages(
  { messages, model, busy }: {
    readonly messages: readonly Message[];
    readonly model: string;
    readonly busy: boolean;
  },
) {
  return (
    <ol class="messages" aria-live="polite">
      {messages.map(({ role, content }, index) => (
        <li key={index} class={role}>
          <b>{role === "user" ? "You" : model}</b>
          <p>{content === "" && busy ? "…" : content}</p>
        </li>
      ))}
    </ol>
  );
}

function Choices(
  { names, model, onModel, apiKey, onKey }: {
    readonly names: readonly string[];
    readonly model: string;
    readonly onModel: (model: string) => void;
    readonly apiKey: string;
    readonly onKey: (key: string) => void;
  },
) {
  return (
    <div class="buttons">
      <label>
        Model
        <select value={model} onChange={(event) => onModel(event.currentTarget.value)}>
          {names.map((name) => <option key={name} value={name}>{name}</option>)}
        </select>
      </label>
      <label>
        Key (kept on this page alone)
        <input
          type="password"
          autocomplete="off"
          placeholder="sk-heddle-…"
          value={apiKey}
          onInput={(event) => onKey(event.currentTarget.value)}
        />
      </label>
    </div>
  );
}

function withPiece(piece: string) {
  return (before: readonly Message[]): readonly Message[] => {
    const last = before.at(-1);
    if (last === undefined) return before;
    return [...before.slice(0, -1), { ...last, content: last.content + piece }];
  };
}

function speedOf({ firstMs, wholeMs, tokens }: ChatEnd): string {
  const first = firstMs === undefined ? "no token" : `first token after ${Math.round(firstMs)} ms`;
  const rate = tokens === undefined || firstMs === undefined || wholeMs <= firstMs
    ? ""
    : `, then ${Math.round((tokens / (wholeMs - firstMs)) * 1_000)} tokens/s`;
  return `${first}${rate}; ${duration(wholeMs)} in all, as this page sees it.`;
}
