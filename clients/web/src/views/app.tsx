// The frame of the page: the list of sessions, the chosen view, and what concerns the connection.

import { useContext, useEffect, useState } from "preact/hooks";
import { HostContext, type Connection } from "../host.ts";
import type { Store } from "../store.ts";
import { href, route } from "../route.ts";
import { chooseTheme, theme, type Theme } from "../theme.ts";
import { Compare } from "./compare.tsx";
import { Boundary, Icon } from "./common.tsx";
import { Home, NewSession } from "./home.tsx";
import { SessionList } from "./list.tsx";
import { SessionView } from "./session.tsx";
import { SetupView } from "./setup.tsx";

export function App({ store, connection }: { store: Store; connection: Connection }) {
  const [drawer, setDrawer] = useState(false);
  const to = route.value;
  const waiting = store.asking.value.length;
  useEffect(() => {
    document.title = `${waiting > 0 ? `(${waiting}) ` : ""}${store.title.value ? `${store.title.value} – ` : ""}jumpseat`;
  }, [waiting, store.title.value]);
  useEffect(() => {
    if (to.view === "session" && !document.hidden) store.seen(to.id);
  }, [to, store.finished.value]);
  useEffect(() => {
    const key = (event: KeyboardEvent): void => {
      const typing = event.target instanceof HTMLElement && event.target.closest("input, textarea, select");
      if (event.key === "Escape" && drawer) setDrawer(false);
      if (typing || event.ctrlKey || event.metaKey || event.altKey) return;
      if (event.key === "/") {
        event.preventDefault();
        (document.querySelector(".sidebar input[type=search]") as HTMLElement | null)?.focus();
      } else if (event.key === "i") {
        const box = document.getElementById("prompt") ?? document.getElementById("begin");
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
          {connection.link.value === "open" ? <span title={`Version ${connection.version.value}`}>Connected<span class="version"> · {connection.version.value}</span></span> : connection.link.value === "lost" ? "Connection lost, trying again…" : "Connecting…"}
          <span class="grow" />
          <ThemeChoice />
          {connection.logOut && <button type="button" class="link" title="Forget this browser, in all its tabs" onClick={() => connection.logOut?.()}>Log out</button>}</footer>
      </aside>
      {drawer && <div class="shade" onClick={() => setDrawer(false)} />}
      <Boundary key={to.view === "session" ? to.id : to.view} what="this view">{to.view === "session" ? <SessionView key={to.id} store={store} id={to.id} tab={to.tab} at={to.at} />
        : to.view === "compare" ? <Compare key={`${to.left} ${to.right}`} store={store} left={to.left} right={to.right} />
        : to.view === "new" ? <NewSession store={store} connection={connection} />
        : to.view === "setup" ? <SetupView store={store} /> : <Home store={store} connection={connection} />}</Boundary>
      {connection.link.value === "lost" && <p class="toast warning" role="status">The server has gone. The page connects again as soon as it is back.</p>}
      {store.problem.value && <p class="toast error" role="alert"><span>{store.problem.value}</span><button type="button" class="quiet" aria-label="Close" onClick={() => { store.problem.value = ""; }}><Icon name="cross" /></button></p>}
      <p class="hidden" role="status" aria-live="polite">{store.said.value}</p>
    </div>
  );
}

function ThemeChoice() {
  if (!useContext(HostContext).choosesTheme) return null;
  return (
    <select aria-label="Colours" title="Colours of the page in this browser; auto: those of the system" value={theme.value} onChange={(event) => chooseTheme(event.currentTarget.value as Theme)}>
      <option value="system">auto</option><option value="light">light</option><option value="dark">dark</option>
    </select>
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
        {connection.stranger.value ? <p>Run <code>jumpseat web</code> for an address that opens this page.</p> : <>
          <p>Run <code>jumpseat web</code> for an address that opens this page, or enter the connection token of the server.</p>
          <label class="field">Connection token
            <input type="password" autocomplete="off" value={token} onInput={(event) => setToken(event.currentTarget.value)} />
          </label>
          <div class="choices"><button type="submit" class="primary" disabled={!token.trim()}>Open</button></div>
        </>}
      </form>
    </main>
  );
}
