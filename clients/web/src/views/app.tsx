// The frame of the page: the list of sessions, the chosen view, and what concerns the connection.

import { useContext, useEffect, useMemo, useState } from "preact/hooks";
import { HostContext, type Connection } from "../host.ts";
import type { Store } from "../store.ts";
import { go, href, route } from "../route.ts";
import { Compare } from "./compare.tsx";
import { Boundary, Icon } from "./common.tsx";
import { Entry, SessionList } from "./list.tsx";
import { SessionView } from "./session.tsx";

/** The sessions that the first view shows on narrow screens. */
const LATEST = 12;

export function App({ store, connection }: { store: Store; connection: Connection }) {
  const [drawer, setDrawer] = useState(false);
  const to = route.value;
  useEffect(() => {
    const key = (event: KeyboardEvent): void => {
      const typing = event.target instanceof HTMLElement && event.target.closest("input, textarea, select");
      if (event.key === "Escape" && drawer) setDrawer(false);
      if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "/") {
        event.preventDefault();
        (document.querySelector(".sidebar input[type=search]") as HTMLElement | null)?.focus();
      } else if (event.key === "i") {
        const box = document.getElementById("prompt");
        if (box) {
          event.preventDefault();
          box.focus();
        }
      }
    };
    addEventListener("keydown", key);
    return () => removeEventListener("keydown", key);
  }, [drawer]);
  if (connection.link.value === "locked") return <Unlock connection={connection} />;
  if (connection.link.value === "failed") return <Failed connection={connection} />;
  return (
    <div class={drawer ? "frame drawer-open" : "frame"}>
      <a class="skip" href="#main" onClick={(event) => { event.preventDefault(); (document.querySelector("#main [tabindex='0'], #main a, #main button") as HTMLElement | null)?.focus(); }}>Skip to the session</a>
      <button type="button" class="drawer-button quiet" aria-expanded={drawer} aria-controls="sidebar" aria-label="Sessions" onClick={() => setDrawer(!drawer)}><Icon name="menu" size={20} /></button>
      <aside class="sidebar" id="sidebar" aria-label="Sessions">
        <header class="brand"><a href="#/">jumpseat</a><span class="grow" />
          <a class="button" href={href({ view: "new" })} onClick={() => setDrawer(false)}><Icon name="plus" size={15} /> New</a></header>
        <SessionList store={store} onChoose={() => setDrawer(false)} />
        <footer class="link-state"><span class={`dot link-${connection.link.value}`} aria-hidden="true" />
          {connection.link.value === "open" ? `Connected · ${connection.version.value}` : connection.link.value === "lost" ? "Connection lost, trying again…" : "Connecting…"}</footer>
      </aside>
      {drawer && <div class="shade" onClick={() => setDrawer(false)} />}
      <Boundary key={to.view === "session" ? to.id : to.view} what="this view">{to.view === "session" ? <SessionView key={to.id} store={store} id={to.id} tab={to.tab} at={to.at} />
        : to.view === "compare" ? <Compare key={`${to.left} ${to.right}`} store={store} left={to.left} right={to.right} />
        : to.view === "new" ? <NewSession store={store} /> : <Home store={store} connection={connection} />}</Boundary>
      {connection.link.value === "lost" && <p class="toast warning" role="status">The server has gone. The page connects again as soon as it is back.</p>}
      {store.problem.value && <p class="toast error" role="alert"><span>{store.problem.value}</span><button type="button" class="quiet" aria-label="Close" onClick={() => { store.problem.value = ""; }}><Icon name="cross" /></button></p>}
      <p class="hidden" role="status" aria-live="polite">{store.said.value}</p>
    </div>
  );
}

/** Return whether the page is so narrow that the list of sessions is behind a button, as the styles say. */
function useIsNarrow(): boolean {
  const query = useMemo(() => matchMedia("(max-width: 800px)"), []);
  const [isNarrow, setNarrow] = useState(query.matches);
  useEffect(() => {
    const change = (): void => setNarrow(query.matches);
    query.addEventListener("change", change);
    return () => query.removeEventListener("change", change);
  }, [query]);
  return isNarrow;
}

function Home({ store, connection }: { store: Store; connection: Connection }) {
  const { folders } = useContext(HostContext);
  const isNarrow = useIsNarrow();
  const begin = async (): Promise<void> => {
    const id = await store.create(folders[0]!, "");
    if (id) go({ view: "session", id, tab: "transcript", at: null });
  };
  useEffect(() => { document.title = "jumpseat"; }, []);
  return (
    <main class="main" id="main"><div class="page home">
      <h1>Sessions</h1>
      <p>{store.sessions.value.length === 0 && store.listed.value ? "There are no sessions yet." : "Choose a session, or begin a new one."}</p>
      <p>{folders.length === 1
        ? <button type="button" class="primary" disabled={connection.link.value !== "open"} onClick={() => void begin()}><Icon name="plus" size={15} /> New session</button>
        : <a class="button primary" href={href({ view: "new" })}><Icon name="plus" size={15} /> New session</a>}</p>
      <p class="faint"><kbd>/</kbd> searches sessions, <kbd>i</kbd> goes to the prompt, <kbd>Enter</kbd> sends it, <kbd>Shift</kbd>+<kbd>Enter</kbd> begins a line.</p>
      {/* Where the list of all sessions is behind a button. */}
      {isNarrow && <nav class="latest" aria-label="Latest sessions"><ul>
        {store.sessions.value.filter((one) => !one.oneOff && !one.unanswered).slice(0, LATEST).map((one) => <Entry key={one.sessionId} session={one} description={store.descriptions.value.get(one.sessionId)} />)}
      </ul></nav>}
    </div></main>
  );
}

function NewSession({ store }: { store: Store }) {
  const { folders } = useContext(HostContext);
  const [folder, setFolder] = useState(folders[0] ?? store.folders.value[0] ?? "");
  const [model, setModel] = useState("");
  const [busy, setBusy] = useState(false);
  useEffect(() => { document.title = "New session – jumpseat"; }, []);
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    setBusy(true);
    const id = await store.create(folder.trim(), model);
    setBusy(false);
    if (id) go({ view: "session", id, tab: "transcript", at: null });
  };
  return (
    <main class="main" id="main"><div class="page home">
      <h1>New session</h1>
      <form onSubmit={(event) => void submit(event)}>
        <label class="field">Folder, on the machine of the server
          <input value={folder} list="folders" spellcheck={false} placeholder="the working directory of the server" onInput={(event) => setFolder(event.currentTarget.value)} />
        </label>
        <datalist id="folders">{[...new Set([...folders, ...store.folders.value])].map((one) => <option key={one} value={one} />)}</datalist>
        <label class="field">Model
          <select value={model} onChange={(event) => setModel(event.currentTarget.value)}>
            <option value="">the server's default</option>
            {store.models.value.map((one) => <option key={one.id} value={one.id}>{one.name}</option>)}
          </select>
        </label>
        <div class="choices"><button type="submit" class="primary" disabled={busy}>Begin</button></div>
      </form>
    </div></main>
  );
}

function Failed({ connection }: { connection: Connection }) {
  return (
    <main class="unlock" id="main"><div>
      <h1>jumpseat</h1>
      <p class="note error" role="alert">{connection.problem.value}</p>
      <div class="choices">{connection.remedies.value.map((one, at) => <button type="button" key={one.label} class={at === 0 ? "primary" : ""} onClick={one.run}>{one.label}</button>)}</div>
    </div></main>
  );
}

function Unlock({ connection }: { connection: Connection }) {
  const [token, setToken] = useState("");
  return (
    <main class="unlock" id="main">
      <form onSubmit={(event) => { event.preventDefault(); if (token.trim()) connection.unlock(token); }}>
        <h1>jumpseat</h1>
        {connection.problem.value && <p class="note error" role="alert">{connection.problem.value}</p>}
        <p>Run <code>jumpseat web</code> for an address that opens this page, or enter the connection token of the server.</p>
        <label class="field">Connection token
          <input type="password" autocomplete="off" value={token} onInput={(event) => setToken(event.currentTarget.value)} />
        </label>
        <div class="choices"><button type="submit" class="primary" disabled={!token.trim()}>Open</button></div>
      </form>
    </main>
  );
}
