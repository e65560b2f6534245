// One session: its heading, its facts and its views.

import { useContext, useEffect, useMemo, useState } from "preact/hooks";
import { HostContext } from "../host.ts";
import { asJsonLines, asMarkdown } from "../state/exports.ts";
import { factsOf } from "../state/facts.ts";
import { dateTime } from "../state/format.ts";
import type { Row, SessionState } from "../state/types.ts";
import type { OpenSession, Store } from "../store.ts";
import { go, href, TABS, type Tab } from "../route.ts";
import { Composer } from "./composer.tsx";
import { Icon, Menu, MenuItem } from "./common.tsx";
import { DeleteDialog } from "./delete.tsx";
import { Decisions } from "./decisions.tsx";
import { FactStrip } from "./facts.tsx";
import { Questions } from "./questions.tsx";
import { RenameDialog } from "./rename.tsx";
import { RewindDialog } from "./rewind.tsx";
import { RowView } from "./rows.tsx";
import { Timeline } from "./timeline.tsx";
import { UsageView } from "./usage.tsx";
import { VirtualList } from "./virtual.tsx";
import { WireView } from "./wire.tsx";

const TAB_NAMES: Record<Tab, string> = { transcript: "Transcript", timeline: "Timeline", usage: "Usage", decisions: "Decisions", wire: "Wire" };

export function SessionView({ store, id, tab, at }: { store: Store; id: string; tab: Tab; at: string | null }) {
  const session = store.open(id).value;
  const { state } = session;
  const description = store.descriptions.value.get(id);
  const facts = useMemo(() => factsOf(state, description?.usage ?? null), [state, description]);
  const { save } = useContext(HostContext);
  const [renaming, setRenaming] = useState(false);
  const [deleting, setDeleting] = useState(false);
  const [rewindTo, setRewindTo] = useState<string | null>(null);
  useEffect(() => {
    store.title.value = `${state.questions.length > 0 ? "❓ " : state.working ? "▸ " : ""}${state.title || "Session"}`;
  }, [state.title, state.working, state.questions.length]);

  const fork = async (eventId: string | null): Promise<void> => {
    const made = await store.fork(id, eventId);
    if (made) go({ view: "session", id: made, tab: "transcript", at: null });
  };
  if (session.status === "missing") return <main class="main" id="main"><div class="page"><h1>Not found</h1><p>{session.problem}</p></div></main>;
  return (
    <main class="main" id="main">
      <header class="session-head">
        <div class="session-name">
          <h1 title={state.title} dir="auto">{state.title || (session.status === "loading" ? "Loading…" : "New session")}</h1>
          <p class="faint">{[state.folder, state.branch, state.model ?? facts.models[0]?.model, dateTime(state.started)].filter(Boolean).join(" · ")}</p>
        </div>
        <Status session={session} />
        <Menu label="Actions for this session" icon="more">
          {session.status === "live" && <MenuItem onClick={() => setRenaming(true)}>Rename…</MenuItem>}
          <MenuItem onClick={() => void fork(null)}>Fork</MenuItem>
          <MenuItem onClick={() => go({ view: "compare", left: id, right: null })}>Compare with another session</MenuItem>
          <MenuItem onClick={() => save(`${id}.md`, asMarkdown(state, facts), "text/markdown")}>Export as Markdown</MenuItem>
          <MenuItem onClick={() => save(`${id}.jsonl`, asJsonLines(state), "application/x-ndjson")}>Export as JSON lines</MenuItem>
          <MenuItem onClick={() => void store.load(id)}>Load again</MenuItem>
          {session.status !== "elsewhere" && <MenuItem onClick={() => setDeleting(true)}>Delete…</MenuItem>}
        </Menu>
      </header>
      {session.problem && <p class="note error" role="alert">{session.problem}</p>}
      <FactStrip state={state} facts={facts} />
      <nav class="tabs" aria-label="Views of this session">
        {TABS.map((one) => <a key={one} href={href({ view: "session", id, tab: one, at: null })} aria-current={one === tab ? "page" : undefined}>{TAB_NAMES[one]}{one === "decisions" && state.decisions.length > 0 ? ` ${state.decisions.length}` : ""}</a>)}
      </nav>
      {tab === "transcript" && <Transcript store={store} session={session} at={at} fork={(eventId) => void fork(eventId)} rewind={setRewindTo} />}
      {tab === "timeline" && <Timeline state={state} facts={facts} />}
      {tab === "usage" && <UsageView state={state} facts={facts} live={session.status === "live"} />}
      {tab === "decisions" && <Decisions store={store} session={session} />}
      {tab === "wire" && <WireView store={store} state={state} at={at} />}
      {tab !== "transcript" && state.questions.length > 0 && <div class="dock"><Questions store={store} state={state} /></div>}
      {renaming && <RenameDialog store={store} id={id} title={state.title} onClose={() => setRenaming(false)} />}
      {deleting && <DeleteDialog store={store} id={id} title={state.title} onClose={() => setDeleting(false)} />}
      {rewindTo !== null && <RewindDialog store={store} session={session} eventId={rewindTo} onClose={() => setRewindTo(null)} />}
    </main>
  );
}

function Status({ session }: { session: OpenSession }) {
  const { state, status } = session;
  if (status === "loading") return <span class="pill">loading</span>;
  if (state.questions.length > 0) return <span class="pill asks">asks you</span>;
  if (state.working) return <span class="pill working">works</span>;
  return <span class={`pill ${status}`}>{status === "live" ? "ready" : status === "elsewhere" ? "open in another process" : "stored"}</span>;
}

interface TranscriptProps {
  store: Store;
  session: OpenSession;
  at: string | null;
  fork: (eventId: string) => void;
  rewind: (eventId: string) => void;
}

function Transcript({ store, session, at, fork, rewind }: TranscriptProps) {
  const { state, status } = session;
  const actions = { fork, rewind };
  const target = at === null ? null : state.rows.findIndex((row) => row.key === at || row.eventId === at || (row.kind === "call" && row.agentId !== null && state.agents[row.agentId]?.rows.some((inner) => inner.key === at)));
  return (
    <>
      {state.rows.length === 0
        ? <div class="page empty-session">{status === "loading" ? <p class="faint">Loading…</p> : <p class="faint">Nothing has happened in this session yet.</p>}</div>
        : (
          <VirtualList
            id={session.id} class="transcript" label="Transcript" role="feed" count={state.rows.length} estimate={90} follow target={target}
            keyOf={(index) => state.rows[index]!.key} dependsOn={(index) => rowDependsOn(state.rows[index]!, state, index === target)}
            render={(index) => <div class={index === target ? "target" : undefined}><RowView row={state.rows[index]!} state={state} actions={actions} /></div>}
          />
        )}
      <div class="dock">
        {session.todos.length > 0 && <Todos todos={session.todos} />}
        {status === "live" && state.questions.length > 0 && <Questions store={store} state={state} />}
        {status === "live" && <Composer store={store} session={session} />}
        {status === "stored" && (
          <p class="stored"><span>This session is stored. No server has it open, so that it can be read only.</span>
            <button type="button" class="primary" onClick={() => void store.revive(session.id)}>Continue here</button></p>
        )}
        {status === "elsewhere" && (
          <p class="stored"><span>Another process has this session open: it can be read only.</span>
            <button type="button" onClick={() => void store.load(session.id)}>Load again</button></p>
        )}
      </div>
    </>
  );
}

/** What a row shows. A call that runs has a growing duration, and a sub-agent rows of its own. */
function rowDependsOn(row: Row, state: SessionState, isTarget: boolean): readonly unknown[] {
  const changes = row.kind === "call" && (row.agentId !== null || (row.start !== null && row.end === null));
  return [row, isTarget, state.folder, changes ? state : null];
}

function Todos({ todos }: { todos: OpenSession["todos"] }) {
  const done = todos.filter((todo) => todo.status === "done" || todo.status === "completed").length;
  const current = todos.find((todo) => todo.status === "in_progress");
  return (
    <details class="todos">
      <summary><Icon name="chevron" size={14} /> Todos {done}/{todos.length} {current && <span class="faint">{current.title}</span>}</summary>
      <ul>
        {todos.map((todo, index) => (
          <li key={todo.id ?? index} class={todo.status}><span class="todo-mark" aria-hidden="true">{todo.status === "done" || todo.status === "completed" ? "✓" : todo.status === "in_progress" ? "▸" : todo.status === "blocked" ? "!" : ""}</span><span>{todo.title}</span><span class="hidden"> ({todo.status})</span></li>
        ))}
      </ul>
    </details>
  );
}
