// The list of sessions: searchable, by day, with state, model, tokens and cost.

import { useContext, useEffect, useState } from "preact/hooks";
import { HostContext } from "../host.ts";
import { day, dollars, shortPath, tokens } from "../state/format.ts";
import type { Description, Listed, Store } from "../store.ts";
import { href, route } from "../route.ts";
import { Icon } from "./common.tsx";

export function usageOf(description: Description | undefined): { tokens: number; costUsd: number | null; models: string[] } {
  const models = Object.entries(description?.usage ?? {}) as [string, any][];
  const costs = models.map(([, used]) => used.costUsd).filter((cost) => typeof cost === "number");
  return {
    tokens: models.reduce((total, [, used]) => total + (used.usage?.inputTokens ?? 0) + (used.usage?.outputTokens ?? 0), 0),
    costUsd: costs.length > 0 ? costs.reduce((total, cost) => total + cost, 0) : null,
    models: models.map(([model]) => model),
  };
}

export function titleOf(session: Listed | undefined): string {
  return session?.name ?? session?.summary ?? "New session";
}

/** The shortest text that is searched in the prompts and answers of sessions. */
const SHORTEST = 3;
const SETTLE_MS = 250;

export function SessionList({ store, onChoose }: { store: Store; onChoose: () => void }) {
  const [text, setText] = useState("");
  const { folders: own } = useContext(HostContext);
  const [chosen, setFolder] = useState(own.length === 1 ? own[0]! : "");
  const folder = store.folders.value.includes(chosen) ? chosen : "";
  useEffect(() => {
    const wanted = text.trim().length >= SHORTEST ? text.trim() : "";
    const timer = setTimeout(() => void store.search(wanted), wanted ? SETTLE_MS : 0);
    return () => clearTimeout(timer);
  }, [text, store]);
  const found = store.found.value;
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  const now = Date.now();
  const shown = store.sessions.value.filter((session) => {
    const description = store.descriptions.value.get(session.sessionId);
    // One-off and empty sessions are shown if they are open, or searched for.
    if (words.length === 0 && (session.oneOff || session.unanswered) && (!description || description.state === "stored")) return false;
    if (folder && session.context?.cwd !== folder) return false;
    const searched = [titleOf(session), session.context?.cwd, session.context?.branch, session.context?.repository, session.sessionId, description?.model].join(" ").toLowerCase();
    return words.every((word) => searched.includes(word)) || found?.has(session.sessionId);
  });
  const days = new Map<string, Listed[]>();
  for (const session of shown.slice(0, 500)) {
    const name = day(Date.parse(session.modifiedTime), now);
    days.set(name, [...(days.get(name) ?? []), session]);
  }
  return (
    <>
      <div class="list-head">
        <label class="search"><span class="hidden">Search sessions</span><Icon name="search" size={15} /><input type="search" value={text} placeholder="Search sessions" onInput={(event) => setText(event.currentTarget.value)} /></label>
        {store.folders.value.length > 1 && (
          <label><span class="hidden">Folder</span>
            <select value={folder} onChange={(event) => setFolder(event.currentTarget.value)}>
              <option value="">All folders</option>
              {store.folders.value.map((one) => <option key={one} value={one}>{shortPath(one)}</option>)}
            </select>
          </label>
        )}
      </div>
      <div class="list" tabIndex={0} role="region" aria-label="List of sessions">
        {[...days].map(([name, sessions]) => (
          <section key={name}>
            <h2>{name}</h2>
            <ul>{sessions.map((session) => <Entry key={session.sessionId} session={session} description={store.descriptions.value.get(session.sessionId)} excerpt={found?.get(session.sessionId)} onChoose={onChoose} />)}</ul>
          </section>
        ))}
        {store.listed.value && shown.length === 0 && <p class="faint empty">{store.sessions.value.length === 0 ? "No sessions yet." : "No session matches."}</p>}
      </div>
    </>
  );
}

const STATES: Record<Description["state"], string> = { working: "works", idle: "open", elsewhere: "open in another process", stored: "" };

export function Entry({ session, description, excerpt, onChoose }: { session: Listed; description: Description | undefined; excerpt?: string | undefined; onChoose?: () => void }) {
  const used = usageOf(description);
  const current = route.value.view === "session" && route.value.id === session.sessionId;
  const asks = description && (description.openQuestions ?? 0) > 0;
  const state = asks ? "asks you" : description ? STATES[description.state] : "";
  const facts = [
    used.costUsd !== null ? dollars(used.costUsd) : "", used.tokens ? `${tokens(used.tokens)} tokens` : "",
    description?.model ?? used.models[0], shortPath(session.context?.cwd ?? "", 1).replace("…/", ""),
  ].filter(Boolean);
  return (
    <li>
      <a class={current ? "entry current" : "entry"} href={href({ view: "session", id: session.sessionId, tab: "transcript", at: null })} aria-current={current ? "page" : undefined} onClick={onChoose}>
        <span class="entry-title">{titleOf(session)}</span>
        {state && <span class={`pill ${asks ? "asks" : description!.state}`}>{state}</span>}
        <span class="entry-facts">{facts.join(" · ")}</span>
        {excerpt && <span class="entry-facts">{excerpt}</span>}
      </a>
    </li>
  );
}
