// One session: its heading, its facts and its views.

import { useContext, useEffect, useMemo, useState } from "preact/hooks";
import { HostContext } from "../host.ts";
import { shownPath } from "../state/diff.ts";
import { asJsonLines, asMarkdown } from "../state/exports.ts";
import { factsOf } from "../state/facts.ts";
import { dateTime } from "../state/format.ts";
import { factsOfRuns, filesOf } from "../state/runs.ts";
import type { OpenSession, Store } from "../store.ts";
import { go, href, TABS, type Tab } from "../route.ts";
import { ChangesView } from "./changes.tsx";
import { Composer } from "./composer.tsx";
import { Icon, Menu, MenuItem, useClock } from "./common.tsx";
import { useCounted } from "./counted.ts";
import { DeleteDialog } from "./delete.tsx";
import { FactLine } from "./facts.tsx";
import { Questions } from "./questions.tsx";
import { RenameDialog } from "./rename.tsx";
import { RewindDialog } from "./rewind.tsx";
import { Timeline } from "./timeline.tsx";
import { Transcript } from "./transcript.tsx";
import { UsageView } from "./usage.tsx";
import { WireView } from "./wire.tsx";

const TAB_NAMES: Record<Tab, string> = { transcript: "Transcript", changes: "Changes", timeline: "Timeline", usage: "Usage", decisions: "Decisions", wire: "Log" };
/** The decisions are a part of the log, with an address of their own. */
const SHOWN_TABS = TABS.filter((one) => one !== "decisions");

export function SessionView({ store, id, tab, at }: { store: Store; id: string; tab: Tab; at: string | null }) {
  const session = store.open(id).value;
  const { state } = session;
  const description = store.descriptions.value.get(id);
  const counted = useCounted(store, session);
  const runs = useMemo(() => factsOfRuns(state, counted), [state, counted]);
  const facts = useMemo(() => factsOf(state, description?.usage ?? null, runs), [state, description, runs]);
  const { save } = useContext(HostContext);
  const hasRoom = useHasRoom();
  const canTell = useClock();
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
  const fileName = state.title.replace(/[^\p{L}\p{N}]+/gu, "-").replace(/^-|-$/g, "").slice(0, 60) || id;
  const shown = tab === "decisions" ? "wire" : tab;
  const to = (one: Tab): string => href({ view: "session", id, tab: one, at: null });
  const about = [state.folder, state.branch, state.model ?? facts.models[0]?.model, canTell ? dateTime(state.started) : ""].filter(Boolean).join(" · ");
  return (
    <main class="main" id="main">
      <header class="session-head">
        <h1 dir="auto" title={`${state.title}\n${about}`}>{state.title || (session.status === "loading" ? "Loading…" : "New session")}</h1>
        <nav class="tabs" aria-label="Views of this session">
          {SHOWN_TABS.map((one) => <a key={one} href={to(one)} aria-current={one === shown ? "page" : undefined}>{TAB_NAMES[one]}</a>)}
        </nav>
        <label class="tab-choice"><span class="hidden">View of this session</span>
          <select value={shown} onChange={(event) => go({ view: "session", id, tab: event.currentTarget.value as Tab, at: null })}>
            {SHOWN_TABS.map((one) => <option key={one} value={one}>{TAB_NAMES[one]}</option>)}
          </select>
        </label>
        <Menu label="Actions for this session" icon="more">
          {session.status === "live" && <MenuItem onClick={() => setRenaming(true)}>Rename…</MenuItem>}
          <MenuItem onClick={() => void fork(null)}>Fork</MenuItem>
          <MenuItem onClick={() => go({ view: "compare", left: id, right: null })}>Compare with another session</MenuItem>
          <MenuItem onClick={() => save(`${fileName}.md`, asMarkdown(state, facts), "text/markdown")}>Export as Markdown</MenuItem>
          <MenuItem onClick={() => save(`${fileName}.jsonl`, asJsonLines(state), "application/x-ndjson")}>Export as JSON lines</MenuItem>
          <MenuItem onClick={() => void store.load(id)}>Reload</MenuItem>
          {session.status !== "elsewhere" && <MenuItem onClick={() => setDeleting(true)}>Delete…</MenuItem>}
        </Menu>
        <FactLine session={session} facts={facts} />
      </header>
      {session.problem && <p class="note error" role="alert">{session.problem}</p>}
      {tab === "transcript" && (
        <div class="transcript-columns">
          <Transcript session={session} runs={runs} at={at} actions={{ fork: (eventId) => void fork(eventId), rewind: setRewindTo }} />
          {hasRoom && <Aside store={store} session={session} />}
        </div>
      )}
      {tab === "changes" && <ChangesView store={store} session={session} at={at} />}
      {tab === "timeline" && <Timeline state={state} facts={facts} />}
      {tab === "usage" && <UsageView state={state} facts={facts} live={session.status === "live"} />}
      {(tab === "wire" || tab === "decisions") && <WireView store={store} session={session} at={at} first={tab === "wire" ? "events" : "decisions"} />}
      <Dock store={store} session={session} isTranscript={tab === "transcript"} isAlone={!(hasRoom && tab === "transcript")} />
      {renaming && <RenameDialog store={store} id={id} title={state.title} onClose={() => setRenaming(false)} />}
      {deleting && <DeleteDialog store={store} id={id} title={state.title} onClose={() => setDeleting(false)} />}
      {rewindTo !== null && <RewindDialog store={store} session={session} eventId={rewindTo} onClose={() => setRewindTo(null)} />}
    </main>
  );
}

/** Return whether the window has room for a column beside the transcript. */
function useHasRoom(): boolean {
  const query = useMemo(() => matchMedia("(min-width: 1600px)"), []);
  const [hasRoom, setRoom] = useState(query.matches);
  useEffect(() => {
    const change = (): void => setRoom(query.matches);
    query.addEventListener("change", change);
    return () => query.removeEventListener("change", change);
  }, [query]);
  return hasRoom;
}

/** What is asked of the person, the changed files and the todos, beside the transcript. */
function Aside({ store, session }: { store: Store; session: OpenSession }) {
  const { state } = session;
  const asks = session.status === "live" && state.questions.length > 0;
  const files = useMemo(() => [...filesOf(state.rows, state)], [state.changesVersion, state.rows.length]);
  if (files.length === 0 && session.todos.length === 0 && !asks) return null;
  return (
    <aside class="aside" aria-label="Questions, files and todos" tabIndex={0}>
      {session.status === "live" && <Questions store={store} state={state} />}
      {session.todos.length > 0 && <Todos todos={session.todos} isOpen />}
      {files.length > 0 && <h2>Changed files</h2>}
      <ul>{files.map(([path, lines]) => <li key={path}><a href={href({ view: "session", id: state.id, tab: "changes", at: path })}>{shownPath(path, state.folder)}</a> <span class="added">+{lines.added}</span> <span class="removed">−{lines.removed}</span></li>)}</ul>
    </aside>
  );
}

/** The prompt box and, unless they are beside it, what is asked of the person and the todos; below the other views, the questions only. */
function Dock({ store, session, isTranscript, isAlone }: { store: Store; session: OpenSession; isTranscript: boolean; isAlone: boolean }) {
  const { status, state } = session;
  const asks = isAlone && status === "live" && state.questions.length > 0;
  return (
    <div class={asks ? "dock asking" : "dock"}>
      {isTranscript && isAlone && session.todos.length > 0 && <Todos todos={session.todos} />}
      {isAlone && status === "live" && <Questions store={store} state={state} />}
      {isTranscript && status === "live" && <Composer store={store} session={session} />}
      {isTranscript && status === "stored" && (
        <p class="stored"><span>No server has this session open: it can only be read.</span>
          <button type="button" class="primary" onClick={() => void store.revive(session.id)}>Continue here</button></p>
      )}
      {isTranscript && status === "elsewhere" && (
        <p class="stored"><span>Another process has this session open: it can only be read.</span>
          <button type="button" onClick={() => void store.load(session.id)}>Reload</button></p>
      )}
    </div>
  );
}

function Todos({ todos, isOpen = false }: { todos: OpenSession["todos"]; isOpen?: boolean }) {
  const done = todos.filter((todo) => todo.status === "done" || todo.status === "completed").length;
  const current = todos.find((todo) => todo.status === "in_progress");
  return (
    <details class="todos" open={isOpen}>
      <summary><Icon name="chevron" size={14} /> Todos {done}/{todos.length} {current && <span class="faint">{current.title}</span>}</summary>
      <ul>
        {todos.map((todo, index) => (
          <li key={todo.id ?? index} class={todo.status}><span class="todo-mark" aria-hidden="true">{todo.status === "done" || todo.status === "completed" ? "✓" : todo.status === "in_progress" ? "▸" : todo.status === "blocked" ? "!" : ""}</span><span>{todo.title}</span><span class="hidden"> ({todo.status})</span></li>
        ))}
      </ul>
    </details>
  );
}
