// The list of sessions: searchable, by need and by day, with state, model, tokens and cost.

import { useContext, useEffect, useMemo, useState } from "preact/hooks";
import { HostContext } from "../host.ts";
import { day, dollars, shortPath, tokens } from "../state/format.ts";
import { splitAtHits, wordsOf } from "../state/words.ts";
import type { Description, Hit, Listed, Store } from "../store.ts";
import { href, route } from "../route.ts";
import { Icon } from "./common.tsx";
import { VirtualList } from "./virtual.tsx";

export function usageOf(description: Description | undefined): { tokens: number; costUsd: number | null; models: string[] } {
  const models = Object.entries(description?.usage ?? {}) as [string, any][];
  const costs = models.map(([, used]) => used.costUsd).filter((cost) => typeof cost === "number");
  return {
    tokens: models.reduce((total, [, used]) => total + (used.usage?.inputTokens ?? 0) + (used.usage?.outputTokens ?? 0), 0),
    costUsd: costs.length > 0 ? costs.reduce((total, cost) => total + cost, 0) : null,
    models: models.map(([model]) => model),
  };
}

export function titleOf(session: Listed | undefined, description?: Description): string {
  return session?.name ?? session?.summary ?? description?.title ?? "New session";
}

export interface Group {
  name: string;
  sessions: Listed[];
}

/** The names of the groups before the days. */
export const NEEDS = "Needs you";
export const RUNS = "Running";
export const FINISHED = "Finished";

/** Return sessions by need: those that ask, run, or have ended since a person looked; then the others by day. */
export function groupSessions(store: Store, sessions: readonly Listed[], now: number): Group[] {
  const groups = new Map<string, Listed[]>([[NEEDS, []], [RUNS, []], [FINISHED, []]]);
  for (const session of sessions) {
    const id = session.sessionId;
    const name = store.asks(id) > 0 ? NEEDS : store.descriptions.value.get(id)?.state === "working" ? RUNS
      : store.finished.value.has(id) ? FINISHED : day(Date.parse(session.modifiedTime), now);
    const group = groups.get(name);
    if (group) group.push(session);
    else groups.set(name, [session]);
  }
  return [...groups].filter(([, members]) => members.length > 0).map(([name, members]) => ({ name, sessions: members }));
}

/** One-off and empty sessions are shown if they are open. */
export function isShown(store: Store, session: Listed): boolean {
  const description = store.descriptions.value.get(session.sessionId);
  return (!session.oneOff && !session.unanswered) || (description !== undefined && description.state !== "stored");
}

/** The shortest text that is searched in the prompts and answers of sessions. */
const SHORTEST = 3;
const SETTLE_MS = 250;
const ENTRY_PX = 52;

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
  const words = useMemo(() => wordsOf(text), [text]);
  const shown = store.sessions.value.filter((session) => {
    if (words.length === 0 && !isShown(store, session)) return false;
    if (folder && session.context?.cwd !== folder) return false;
    if (words.length === 0) return true;
    const description = store.descriptions.value.get(session.sessionId);
    const searched = [titleOf(session, description), session.context?.cwd, session.context?.branch, session.context?.repository, session.sessionId, description?.model].join(" ").toLowerCase();
    return words.every((word) => searched.includes(word)) || found?.has(session.sessionId);
  });
  const items: (string | Listed)[] = groupSessions(store, shown, Date.now()).flatMap((group) => [group.name, ...group.sessions]);
  return (
    <>
      <div class="list-head">
        <label class="search"><span class="hidden">Search sessions</span><Icon name="search" size={15} /><input type="search" dir="auto" value={text} placeholder="Search sessions" onInput={(event) => setText(event.currentTarget.value)} /></label>
        {store.folders.value.length > 1 && (
          <label><span class="hidden">Folder</span>
            <select value={folder} onChange={(event) => setFolder(event.currentTarget.value)}>
              <option value="">All folders</option>
              {store.folders.value.map((one) => <option key={one} value={one}>{shortPath(one)}</option>)}
            </select>
          </label>
        )}
      </div>
      {store.listed.value && shown.length === 0
        ? <div class="list"><p class="faint empty">{store.sessions.value.length === 0 ? "No sessions yet." : "No session matches."}</p></div>
        : (
          <VirtualList
            id={`${folder} ${text}`} class="list" label="List of sessions" count={items.length} estimate={ENTRY_PX}
            keyOf={(index) => { const item = items[index]!; return typeof item === "string" ? `day ${item}` : item.sessionId; }}
            render={(index) => {
              const item = items[index]!;
              if (typeof item === "string") return <h2>{item}</h2>;
              return <Entry session={item} store={store} words={words} hit={found?.get(item.sessionId)} onChoose={onChoose} />;
            }}
          />
        )}
    </>
  );
}

const STATES: Record<Description["state"], string> = { working: "working", idle: "open", elsewhere: "open in another process", stored: "" };

interface EntryProps {
  session: Listed;
  store: Store;
  words?: readonly string[];
  hit?: Hit | undefined;
  onChoose?: () => void;
  class?: string;
}

export function Entry({ session, store, words = [], hit, onChoose, class: name = "entry" }: EntryProps) {
  const description = store.descriptions.value.get(session.sessionId);
  const used = usageOf(description);
  const current = route.value.view === "session" && route.value.id === session.sessionId;
  const asks = store.asks(session.sessionId) > 0;
  const isDone = store.finished.value.has(session.sessionId);
  const state = asks ? "asks you" : isDone && description?.state !== "working" ? "finished" : description ? STATES[description.state] : "";
  const title = titleOf(session, description);
  const facts = [
    used.costUsd !== null ? dollars(used.costUsd) : "", used.tokens ? `${tokens(used.tokens)} tokens` : "",
    description?.model ?? used.models[0], shortPath(session.context?.cwd ?? "", 1).replace("…/", ""),
  ].filter(Boolean);
  return (
    <a class={current ? `${name} current` : name} href={href({ view: "session", id: session.sessionId, tab: "transcript", at: hit?.eventId ?? null })} aria-current={current ? "page" : undefined} onClick={onChoose}>
      <span class="entry-title" dir="auto"><Marked text={title} words={words} /></span>
      {state && <span class={`pill ${asks ? "asks" : isDone ? "done" : description!.state}`}>{state}</span>}
      <span class="entry-facts">{facts.join(" · ")}</span>
      {hit?.excerpt && !repeats(hit.excerpt, title) && <span class="entry-facts entry-excerpt" dir="auto"><Marked text={hit.excerpt} words={words} /></span>}
    </a>
  );
}

/** Return whether an excerpt is only the title once more. */
function repeats(excerpt: string, title: string): boolean {
  const plain = (text: string): string => text.replace(/[…\s]+/g, " ").trim();
  return plain(title).startsWith(plain(excerpt));
}

/** A text whose searched words are marked. */
export function Marked({ text, words }: { text: string; words: readonly string[] }) {
  return <>{splitAtHits(text, words).map((part, at) => (part.isHit ? <mark key={at}>{part.text}</mark> : part.text))}</>;
}
