// The log of a session: what was decided and by whom, its events, and the messages of this page's connection.

import { useContext, useEffect, useMemo, useState } from "preact/hooks";
import { HostContext } from "../host.ts";
import { renderCode } from "../markdown.ts";
import { eventStep, messageStep } from "../state/exports.ts";
import { callsOf } from "../state/facts.ts";
import { count, duration, grouped } from "../state/format.ts";
import { asCsv, EventLog, linesAsJson, messageLines, TOPICS, verdictsOf, type LogLine, type Topic } from "../state/log.ts";
import type { WireEvent } from "../state/types.ts";
import type { OpenSession, Store } from "../store.ts";
import { go } from "../route.ts";
import { Html } from "./common.tsx";
import { Decisions } from "./decisions.tsx";
import { VirtualList } from "./virtual.tsx";

type Source = "events" | "decisions" | "messages";
const SOURCES: Record<Source, string> = { events: "Events", decisions: "Decisions", messages: "Messages" };
const COPIED_MS = 2000;
const PAUSE_MS = 120;
const DELTA = /delta|partial_result/;

interface Props {
  store: Store;
  session: OpenSession;
  /** The event that is shown first. */
  at: string | null;
  /** What the log begins with. */
  first: "events" | "decisions";
}

export function WireView({ store, session, at, first }: Props) {
  const { state } = session;
  const { save } = useContext(HostContext);
  const [source, setSource] = useState<Source>(first);
  const [typed, setFilter] = useState("");
  const filter = useSettled(typed);
  const [topic, setTopic] = useState<Topic | "">("");
  const [deltas, setDeltas] = useState(false);
  const [chosen, setChosen] = useState<string | null>(at);
  const [copied, setCopied] = useState("");
  useEffect(() => setSource(first), [first, session.id]);
  useEffect(() => {
    if (!at) return;
    setSource("events");
    setFilter("");
    setTopic("");
    setChosen(at);
  }, [at]);
  const log = useMemo(() => new EventLog(), [session.id]);
  const version = source === "messages" ? store.messagesVersion.value : 0;
  const lines = useMemo(() => {
    if (source === "decisions") return [];
    if (source === "events") return log.lines(state.events);
    return messageLines(store.rpc.messages.filter((one) => one.sessionId === null || one.sessionId === state.id));
  }, [source, state.events, version]);
  const words = filter.toLowerCase().split(/\s+/).filter(Boolean);
  const fits = (line: LogLine, word: string): boolean =>
    line.name.toLowerCase().includes(word) || line.about.toLowerCase().includes(word) || line.outcome.toLowerCase().includes(word) || (word.length > 2 && JSON.stringify(line.body).toLowerCase().includes(word));
  const shown = useMemo(
    () => lines.filter((line) => (deltas || !DELTA.test(line.name)) && (topic === "" || line.topic === topic) && words.every((word) => fits(line, word))),
    [lines, filter, topic, deltas],
  );
  const calls = useMemo(() => (source === "decisions" ? callsOf(state) : []), [source, state.rows, state.agents]);
  const verdicts = useMemo(() => {
    const all = source === "decisions" ? verdictsOf(state, calls) : [];
    return all.filter((one) => words.every((word) => `${one.what} ${one.by} ${one.rule} ${one.feedback} ${one.allowed ? "approved" : "denied"}`.toLowerCase().includes(word)));
  }, [source, state.decisions, calls, filter]);
  const index = shown.findIndex((line) => line.key === chosen);
  const line = index >= 0 ? shown[index]! : null;
  const move = (by: number): void => {
    const next = shown[Math.min(shown.length - 1, Math.max(0, index + by))];
    if (next) setChosen(next.key);
  };
  const copy = async (text: string, what: string): Promise<void> => {
    await navigator.clipboard?.writeText(text);
    setCopied(`${what} copied`);
    setTimeout(() => setCopied(""), COPIED_MS);
  };
  const download = (): void => {
    if (source === "decisions") save(`${state.id}-decisions.csv`, asCsv(verdicts), "text/csv");
    else save(`${state.id}-${source}.jsonl`, linesAsJson(shown), "application/x-ndjson");
  };
  const [found, all] = source === "decisions" ? [verdicts.length, verdicts.length] : [shown.length, lines.length];
  return (
    <div class={line ? "wire with-detail" : "wire"}>
      <div class="wire-head">
        <div class="buttons" role="group" aria-label="Source">
          {(Object.keys(SOURCES) as Source[]).map((one) => <button key={one} type="button" aria-pressed={source === one} title={one === "messages" ? "The messages of this page and its server" : undefined} onClick={() => setSource(one)}>{SOURCES[one]}{one === "decisions" && state.decisions.length > 0 ? ` ${state.decisions.length}` : ""}</button>)}
        </div>
        <label class="search grow"><span class="hidden">Filter</span><input type="search" placeholder={source === "decisions" ? "Filter by command, file or person" : "Filter by type, method or text"} value={typed} onInput={(event) => setFilter(event.currentTarget.value)} /></label>
        {source !== "decisions" && (
          <>
            <label><span class="hidden">Topic</span><select value={topic} onChange={(event) => setTopic(event.currentTarget.value as Topic | "")}>
              <option value="">All topics</option>
              {(Object.keys(TOPICS) as Topic[]).map((one) => <option key={one} value={one}>{TOPICS[one]}</option>)}
            </select></label>
            <label class="check"><input type="checkbox" checked={deltas} onChange={(event) => setDeltas(event.currentTarget.checked)} /> deltas</label>
          </>
        )}
        <button type="button" title={source === "decisions" ? "These decisions as a table (CSV)" : "These lines as JSON lines"} onClick={download}>Export</button>
        <span class="faint" aria-live="polite">{copied || (found === all ? count(all, "line") : `${found} of ${count(all, "line")}`)}</span>
      </div>
      {source === "decisions" ? <Decisions store={store} session={session} verdicts={verdicts} /> : (
        <div class="wire-lists" onKeyDown={(event) => {
          if (event.key === "ArrowDown" || event.key === "ArrowUp") {
            if (event.target instanceof HTMLElement && event.target.closest(".wire-detail")) return;
            event.preventDefault();
            move(event.key === "ArrowDown" ? 1 : -1);
          }
          if (event.key === "Escape") setChosen(null);
        }}>
          <VirtualList
            id={`${state.id} ${source} ${topic} ${deltas} ${filter}`} class="wire-lines" label="Messages" count={shown.length} estimate={30} target={index >= 0 ? index : null} keyOf={(one) => shown[one]!.key}
            render={(one) => <Line item={shown[one]!} chosen={shown[one]!.key === chosen} onChoose={(key) => setChosen(key === chosen ? null : key)} />}
          />
          {line && (
            <section class="wire-detail" aria-label={`JSON of ${line.name}`}>
              <header>
                <h2>{line.name}</h2>
                <button type="button" onClick={() => void copy(JSON.stringify(line.body, null, 2), "JSON")}>Copy JSON</button>
                <button type="button" onClick={() => void copy(line.message ? messageStep(line.message) : eventStep(line.event!), "Step")}>Copy as a step</button>
                {line.event && <button type="button" onClick={() => go({ view: "session", id: state.id, tab: "transcript", at: rowOf(line.event!) })}>Show in the transcript</button>}
                <button type="button" onClick={() => setChosen(null)}>Close</button>
              </header>
              <p class="faint">{[new Date(line.time).toISOString(), `${size(line.body)} bytes of JSON`, line.markText].join(" · ")}</p>
              <Json body={line.body} />
            </section>
          )}
        </div>
      )}
    </div>
  );
}

/** Return a text as it was when a person last paused: to look through a long log takes longer than a key. */
function useSettled(text: string): string {
  const [settled, settle] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => settle(text), text === "" ? 0 : PAUSE_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return settled;
}

function Line({ item, chosen, onChoose }: { item: LogLine; chosen: boolean; onChoose: (key: string) => void }) {
  const time = new Date(item.time);
  const wall = `${time.toLocaleTimeString([], { hour12: false })}.${String(item.time % 1000).padStart(3, "0")}`;
  return (
    <button type="button" class={`wire-line topic-${item.topic}${chosen ? " chosen" : ""}${item.bad ? " bad" : ""}`} aria-pressed={chosen} title={`${wall} · ${item.markText}`} onClick={() => onChoose(item.key)}>
      <time>{item.sincePrompt === null ? wall.slice(0, wall.indexOf(".")) : `+${duration(item.sincePrompt)}`}</time>
      <span class="wire-mark" title={item.markText}>{item.mark}</span>
      <span class="wire-name">{item.name}</span>
      <span class="wire-about">{item.about}</span>
      <span class="wire-outcome">{item.outcome}</span>
    </button>
  );
}

function size(body: unknown): string {
  return grouped(new TextEncoder().encode(JSON.stringify(body)).length);
}

function Json({ body }: { body: unknown }) {
  const html = useMemo(() => renderCode(JSON.stringify(body, null, 2), "json"), [body]);
  return <pre class="code" tabIndex={0} role="group" aria-label="JSON"><Html as="code" html={html} /></pre>;
}

function rowOf(event: WireEvent): string {
  return event.data?.toolCallId ?? event.data?.permissionRequest?.toolCallId ?? event.id;
}
