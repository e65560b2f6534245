// The first view: a prompt for a new session, what needs a person, what runs, what was done lately, and what it cost.

import { useContext, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { NEW } from "../drafts.ts";
import { HostContext, type Connection } from "../host.ts";
import { dollars, shortPath, tokens } from "../state/format.ts";
import { sumBy, type Spent } from "../state/spending.ts";
import type { Store } from "../store.ts";
import { go, href } from "../route.ts";
import { AttachButton, Files, PromptBox, useDrop } from "./composer.tsx";
import { Table } from "./common.tsx";
import { Entry, FINISHED, groupSessions, isShown, NEEDS, RUNS } from "./list.tsx";
import { Providers } from "./setup.tsx";

/** The sessions by day that are shown; the side bar has all of them. */
const LATEST = 20;
const FOLDERS = 6;
const USAGE_DAYS = 30;
const SHOWN_DAYS = 10;

export function Home({ store, connection }: { store: Store; connection: Connection }) {
  const isOpen = connection.link.value === "open";
  useEffect(() => { store.title.value = ""; }, []);
  useEffect(() => {
    if (isOpen) void store.readUsage(USAGE_DAYS);
  }, [isOpen, store.sessions.value]);
  const groups = groupSessions(store, store.sessions.value.filter((one) => isShown(store, one)), Date.now());
  const urgent = groups.filter(({ name }) => name === NEEDS || name === RUNS || name === FINISHED);
  let left = LATEST;
  const days = groups.filter((group) => !urgent.includes(group)).flatMap(({ name, sessions }) => {
    const shown = sessions.slice(0, left);
    left -= shown.length;
    return shown.length > 0 ? [{ name, sessions: shown }] : [];
  });
  return (
    <main class="main" id="main"><div class="page home" tabIndex={0} role="region" aria-label="Overview">
      <h1>Sessions</h1>
      <Begin store={store} connection={connection} />
      {[...urgent, ...days].map(({ name, sessions }) => (
        <section key={name} class={`home-group ${name === NEEDS ? "needs" : ""}`}>
          <h2>{name}{urgent.some((one) => one.name === name) ? ` (${sessions.length})` : ""}</h2>
          <ul>{sessions.map((session) => <li key={session.sessionId}><Entry session={session} store={store} class="home-entry" /></li>)}</ul>
        </section>
      ))}
      {store.listed.value && store.sessions.value.length === 0 && <p class="faint">There are no sessions yet.</p>}
      <Spending store={store} />
      <p class="faint"><kbd>/</kbd> searches sessions, <kbd>i</kbd> goes to the prompt, <kbd>Enter</kbd> sends it, <kbd>Shift</kbd>+<kbd>Enter</kbd> starts a new line.</p>
    </div></main>
  );
}

export function NewSession({ store, connection }: { store: Store; connection: Connection }) {
  useEffect(() => { store.title.value = "New session"; }, []);
  return <main class="main" id="main"><div class="page home"><h1>New session</h1><Begin store={store} connection={connection} focused /></div></main>;
}

/** A session begins by typing; the folder and the model have defaults. Without any model, one is set up first. */
function Begin({ store, connection, focused = false }: { store: Store; connection: Connection; focused?: boolean }) {
  const { folders: own } = useContext(HostContext);
  const known = useMemo(() => [...new Set([...own, ...store.folders.value])], [own, store.folders.value]);
  const [typed, setFolder] = useState<string | null>(null);
  const folder = typed ?? known[0] ?? "";
  const [model, setModel] = useState("");
  const [busy, setBusy] = useState(false);
  const box = useRef<HTMLTextAreaElement>(null);
  const isOpen = connection.link.value === "open";
  useDrop(store, NEW);
  useEffect(() => {
    if (isOpen) void store.readSetup();
  }, [isOpen]);
  useEffect(() => {
    if (focused) box.current?.focus();
  }, []);
  const begin = async (withModel = model): Promise<void> => {
    if (busy || !isOpen) return;
    setBusy(true);
    const { text, files } = store.drafts.of(NEW).value;
    const id = await store.create(folder.trim(), withModel, text.trim() !== "" || files.length > 0);
    setBusy(false);
    if (id) go({ view: "session", id, tab: "transcript", at: null });
  };
  const setup = store.setup.value;
  if (setup && !setup.hasModel && store.models.value.length === 0) {
    return (
      <>
        <p class="note warning"><span>No model is connected yet: connect one, or try jumpseat with a model that only plays a script.</span></p>
        <p><button type="button" disabled={busy || !isOpen} onClick={() => void begin(setup.trialModel)}>Try it without a model</button></p>
        <Providers store={store} />
      </>
    );
  }
  return (
    <form class="begin" onSubmit={(event) => { event.preventDefault(); void begin(); }}>
      <div class="composer">
        <Files store={store} id={NEW} />
        <label class="hidden" for="begin">What should the agent do?</label>
        <PromptBox store={store} id={NEW} box={box} name="begin" rows={2} placeholder="What should the agent do?" send={() => void begin()} />
        <div class="composer-row">
          <AttachButton store={store} id={NEW} />
          <span class="grow" />
          <button type="submit" class="primary" disabled={busy || !isOpen}>{own.length === 1 ? "New session" : "Begin"}</button>
        </div>
      </div>
      <div class="begin-choices">
        {own.length !== 1 && (
          <label class="field grow">Folder, on the machine of the server
            <input value={folder} list="folders" spellcheck={false} placeholder="the working directory of the server" onInput={(event) => setFolder(event.currentTarget.value)} />
          </label>
        )}
        <datalist id="folders">{known.map((one) => <option key={one} value={one} />)}</datalist>
        <ModelField store={store} model={model} choose={setModel} />
      </div>
      {own.length !== 1 && known.length > 1 && (
        <div class="folder-chips" role="group" aria-label="Known folders">
          {known.slice(0, FOLDERS).map((one) => <button type="button" key={one} title={one} aria-pressed={one === folder} onClick={() => setFolder(one)}>{shortPath(one)}</button>)}
        </div>
      )}
    </form>
  );
}

/** The models that can be chosen, and the providers that need something first. */
function ModelField({ store, model, choose }: { store: Store; model: string; choose: (model: string) => void }) {
  const setup = store.setup.value;
  const providers = new Map((setup?.providers ?? []).map((one) => [one.name, one]));
  const groups = new Map<string, { id: string; name: string }[]>();
  for (const one of store.models.value) {
    const provider = one.id.includes("/") ? one.id.split("/")[0]! : "";
    groups.set(provider, [...(groups.get(provider) ?? []), one]);
  }
  const stateOf = (name: string): string => [providers.get(name)?.title ?? name, providers.get(name)?.detail].filter(Boolean).join(": ");
  const options = (models: { id: string; name: string }[]) => models.map((one) => <option key={one.id} value={one.id}>{one.name}</option>);
  const waiting = [...providers.values()].filter((one) => !one.ready && !groups.has(one.name));
  return (
    <div class="field model-field">
      <label class="field">Model
        <select value={model} onChange={(event) => choose(event.currentTarget.value)}>
          <option value="">{setup?.defaultModel ? `the default: ${setup.defaultModel}` : "the server's default"}</option>
          {[...groups].map(([name, models]) => (name ? <optgroup key={name} label={stateOf(name)}>{options(models)}</optgroup> : options(models)))}
          {waiting.length > 0 && <optgroup label="Not connected">{waiting.map((one) => <option key={one.name} disabled>{stateOf(one.name)}</option>)}</optgroup>}
        </select>
      </label>
      {setup && <a class="faint" href={href({ view: "setup" })}>Connect another model…</a>}
    </div>
  );
}

function Spending({ store }: { store: Store }) {
  const usage = store.usage.value;
  if (!usage || usage.length === 0) return null;
  const days = sumBy(usage, (one) => one.day).slice(0, SHOWN_DAYS);
  const models = sumBy(usage, (one) => one.model).sort((one, other) => other.tokens - one.tokens || (other.costUsd ?? 0) - (one.costUsd ?? 0) || one.name.localeCompare(other.name));
  const [total] = sumBy(usage, () => "");
  return (
    <section class="spending">
      <h2>Tokens and cost, last {USAGE_DAYS} days: {tokens(total!.tokens)} tokens, {cost(total!)}</h2>
      <div class="spending-tables">
        <Sums label="By day" rows={days} />
        <Sums label="By model" rows={models} />
      </div>
    </section>
  );
}

function Sums({ label, rows }: { label: string; rows: Spent[] }) {
  const most = Math.max(1, ...rows.map((row) => row.tokens));
  return (
    <Table label={label} class="sums-table">
      <thead><tr><th scope="col">{label}</th><th scope="col" aria-hidden="true" /><th scope="col">Tokens</th><th scope="col">Calls</th><th scope="col">Cost</th></tr></thead>
      <tbody>
        {rows.map((row) => (
          <tr key={row.name}>
            <th scope="row">{row.name}</th>
            <td aria-hidden="true"><span class="sum-bar" style={{ width: `${Math.max(2, (row.tokens / most) * 100)}%` }} /></td>
            <td>{tokens(row.tokens)}</td><td>{row.calls}</td><td>{cost(row)}</td>
          </tr>
        ))}
      </tbody>
    </Table>
  );
}

/** A cost; a lower bound where some prices are unknown. */
function cost(sum: Spent): string {
  return `${sum.isPartial ? "≥ " : ""}${dollars(sum.costUsd)}`;
}
