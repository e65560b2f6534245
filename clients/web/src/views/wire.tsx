// The wire: the events of a session and the messages of this page's connection, each with its JSON.

import { useEffect, useMemo, useState } from "preact/hooks";
import { renderCode } from "../markdown.ts";
import { eventStep, messageStep } from "../state/exports.ts";
import type { SessionState, WireEvent } from "../state/types.ts";
import type { Message } from "../rpc.ts";
import type { Store } from "../store.ts";
import { go } from "../route.ts";
import { Html } from "./common.tsx";
import { VirtualList } from "./virtual.tsx";

interface Line {
  key: string;
  time: number;
  mark: string;
  markText: string;
  name: string;
  detail: string;
  body: any;
  step: string;
  event: WireEvent | null;
}

export function WireView({ store, state, at }: { store: Store; state: SessionState; at: string | null }) {
  const [source, setSource] = useState<"events" | "messages">("events");
  const [filter, setFilter] = useState("");
  const [deltas, setDeltas] = useState(false);
  const [chosen, setChosen] = useState<string | null>(at);
  const [copied, setCopied] = useState("");
  useEffect(() => {
    if (at) {
      setSource("events");
      setFilter("");
      setChosen(at);
    }
  }, [at]);
  const version = source === "messages" ? store.messagesVersion.value : 0;
  const lines = useMemo(
    () => (source === "events" ? state.events.map(eventLine) : store.rpc.messages.filter((one) => one.sessionId === null || one.sessionId === state.id).map(messageLine)),
    [source, state.events, version],
  );
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const shown = useMemo(
    () => lines.filter((line) => (deltas || !/delta|partial_result/.test(line.name)) && words.every((word) => line.name.toLowerCase().includes(word) || line.detail.toLowerCase().includes(word) || (word.length > 2 && JSON.stringify(line.body).toLowerCase().includes(word)))),
    [lines, filter, deltas],
  );
  const index = shown.findIndex((line) => line.key === chosen);
  const line = index >= 0 ? shown[index]! : null;
  const move = (by: number): void => {
    const next = shown[Math.min(shown.length - 1, Math.max(0, index + by))];
    if (next) setChosen(next.key);
  };
  const copy = async (text: string, what: string): Promise<void> => {
    await navigator.clipboard?.writeText(text);
    setCopied(`${what} copied`);
    setTimeout(() => setCopied(""), 2000);
  };
  return (
    <div class={line ? "wire with-detail" : "wire"}>
      <div class="wire-head">
        <div class="buttons" role="group" aria-label="Source">
          <button type="button" aria-pressed={source === "events"} onClick={() => setSource("events")}>Events of the session</button>
          <button type="button" aria-pressed={source === "messages"} onClick={() => setSource("messages")}>Messages of this page</button>
        </div>
        <label class="search grow"><span class="hidden">Filter</span><input type="search" placeholder="Filter by type, method or text" value={filter} onInput={(event) => setFilter(event.currentTarget.value)} /></label>
        <label class="check"><input type="checkbox" checked={deltas} onChange={(event) => setDeltas(event.currentTarget.checked)} /> deltas</label>
        <span class="faint" aria-live="polite">{copied || `${shown.length} of ${lines.length}`}</span>
      </div>
      <div class="wire-lists" onKeyDown={(event) => {
        if (event.key === "ArrowDown" || event.key === "ArrowUp") {
          if (event.target instanceof HTMLElement && event.target.closest(".wire-detail")) return;
          event.preventDefault();
          move(event.key === "ArrowDown" ? 1 : -1);
        }
        if (event.key === "Escape") setChosen(null);
      }}>
        <VirtualList
          id={`${state.id} ${source} ${filter}`} class="wire-lines" label="Messages" count={shown.length} estimate={30} target={index >= 0 ? index : null} keyOf={(one) => shown[one]!.key}
          render={(one) => {
            const item = shown[one]!;
            return (
              <button type="button" class={item.key === chosen ? "wire-line chosen" : "wire-line"} aria-pressed={item.key === chosen} onClick={() => setChosen(item.key === chosen ? null : item.key)}>
                <time>{new Date(item.time).toLocaleTimeString([], { hour12: false })}.{String(item.time % 1000).padStart(3, "0")}</time>
                <span class="wire-mark" title={item.markText}>{item.mark}</span>
                <span class="wire-name">{item.name}</span>
                <span class="wire-about">{item.detail}</span>
              </button>
            );
          }}
        />
        {line && (
          <section class="wire-detail" aria-label={`JSON of ${line.name}`}>
            <header>
              <h2>{line.name}</h2>
              <button type="button" onClick={() => void copy(JSON.stringify(line.body, null, 2), "JSON")}>Copy JSON</button>
              <button type="button" onClick={() => void copy(line.step, "Step")}>Copy as a step</button>
              {line.event && <button type="button" onClick={() => go({ view: "session", id: state.id, tab: "transcript", at: rowOf(line.event!) })}>Show in the transcript</button>}
              <button type="button" onClick={() => setChosen(null)}>Close</button>
            </header>
            <Json body={line.body} />
          </section>
        )}
      </div>
    </div>
  );
}

function Json({ body }: { body: any }) {
  const html = useMemo(() => renderCode(JSON.stringify(body, null, 2), "json"), [body]);
  return <pre class="code" tabIndex={0} role="group" aria-label="JSON"><Html as="code" html={html} /></pre>;
}

function rowOf(event: WireEvent): string {
  return event.data?.toolCallId ?? event.data?.permissionRequest?.toolCallId ?? event.id;
}

function eventLine(event: WireEvent): Line {
  const data = event.data ?? {};
  const detail = data.toolName ?? data.content ?? data.message ?? data.deltaContent ?? data.question ?? data.permissionRequest?.intention ?? data.model ?? data.newModel ?? "";
  return {
    key: event.id, time: Date.parse(event.timestamp) || 0, mark: event.ephemeral ? "◌" : "●", markText: event.ephemeral ? "not stored" : "stored",
    name: event.type, detail: `${event.agentId ? `[${event.agentId.slice(0, 8)}] ` : ""}${String(detail).replace(/\s+/g, " ").slice(0, 200)}`,
    body: event, step: eventStep(event), event,
  };
}

function messageLine(message: Message): Line {
  const kind = message.kind === "response" ? "result" : message.kind === "error" ? "error" : "";
  const detail = message.method === "session.event" ? message.body.params.event.type : message.kind === "error" ? message.body.error.message : message.sent && message.kind === "request" ? JSON.stringify(message.body.params ?? {}).slice(0, 200) : `${message.bytes.toLocaleString("en")} bytes`;
  return {
    key: `message ${message.number}`, time: message.time, mark: message.sent ? "→" : "←", markText: message.sent ? "sent by the page" : "received",
    name: [message.method, kind].filter(Boolean).join(" "), detail, body: message.body, step: messageStep(message), event: message.method === "session.event" ? message.body.params.event : null,
  };
}
