// Questions to the person: approvals with what they grant, questions of the model, plans and forms.

import type { ComponentChildren } from "preact";
import { useContext, useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { HostContext } from "../host.ts";
import { renderMarkdown } from "../markdown.ts";
import { countChanges } from "../state/calls.ts";
import { approvalScope, questionTitle } from "../state/permissions.ts";
import { queueOf } from "../state/queue.ts";
import type { Question, SessionState } from "../state/types.ts";
import type { Store } from "../store.ts";
import { Boundary, Html, Icon, Settled } from "./common.tsx";
import { Diff } from "./diff.tsx";

interface Props<K extends Question["kind"]> {
  store: Store;
  state: SessionState;
  question: Extract<Question, { kind: K }>;
}

/** The first open question, with its place among those that wait. Shows nothing without one. */
export function Questions({ store, state }: { store: Store; state: SessionState }) {
  const question = state.questions[0];
  const section = useRef<HTMLElement>(null);
  useFocusAfter(question, state.working, section);
  useDecisionKeys(section);
  if (!question) return null;
  const agent = question.agentId ? state.agents[question.agentId] : undefined;
  const queue = queueOf(state);
  const props = { store, state, key: question.id };
  return (
    <section class="question" ref={section} aria-label="A question to you" data-question={question.kind}>
      {(queue.total > 1 || agent) && <p class="queue-place">
        {queue.total > 1 && <strong>Question {queue.place} of {queue.isOpen ? "up to " : ""}{queue.total}</strong>}
        {agent && <span class="faint"><Icon name="robot" size={14} /> The sub-agent {agent.name} asks</span>}
      </p>}
      <Settled key={question.id}><Boundary what="this question: stop the session, or answer elsewhere">
        {question.kind === "permission" && <Permission {...props} question={question} />}
        {question.kind === "input" && <Input {...props} question={question} />}
        {question.kind === "plan" && <Plan {...props} question={question} />}
        {question.kind === "form" && <Form {...props} question={question} />}
        {question.kind === "switch" && <Switch {...props} question={question} />}
      </Boundary></Settled>
      {queue.next.length > 0 && (
        <ol class="queue" aria-label="What waits behind this question">
          {queue.next.slice(0, 3).map((one, at) => <li key={at}><span class="tool">{one.what}</span> <span class="subject">{one.subject}</span></li>)}
          {queue.next.length > 3 && <li class="faint">and {queue.next.length - 3} more</li>}
        </ol>
      )}
    </section>
  );
}

/** Keep the focus with the person: after an answer, on the next question's heading, where no key decides; or on the prompt. */
function useFocusAfter(question: Question | undefined, working: boolean, section: { current: HTMLElement | null }): void {
  const before = useRef<string | null>(null);
  const inside = useRef(false);
  // The person has answered, and the next call of the same answer may ask soon.
  const owed = useRef(false);
  const behind = useRef(0);
  const id = question?.id ?? null;
  useEffect(() => {
    const note = (event: FocusEvent): void => {
      inside.current = section.current?.contains(event.target as Node) ?? false;
      owed.current = false;
    };
    addEventListener("focusin", note);
    return () => removeEventListener("focusin", note);
  }, []);
  useLayoutEffect(() => {
    const had = before.current;
    before.current = id;
    if (had !== id && had !== null && inside.current) owed.current = true;
    const active = document.activeElement;
    const isLost = active === null || active === document.body || (section.current?.contains(active) ?? false);
    const waits = id === null && behind.current > 0 && working;
    if (question) behind.current = question.kind === "permission" ? question.behind : 0;
    if (!owed.current || !isLost || waits) return;
    owed.current = false;
    (id !== null ? section.current?.querySelector<HTMLElement>("h2") : document.getElementById("prompt"))?.focus();
  }, [id, working]);
}

/** Alt+A allows and Alt+D denies, as a click on the button does: not before the question is settled, nor by a held key. */
function useDecisionKeys(section: { current: HTMLElement | null }): void {
  useEffect(() => {
    const key = (event: KeyboardEvent): void => {
      if (!event.altKey || event.ctrlKey || event.metaKey || event.shiftKey || event.repeat) return;
      // With the option key of a Mac, the key is another letter.
      const letter = ["KeyA", "KeyD"].includes(event.code) ? event.code.slice(3).toLowerCase() : event.key.toLowerCase();
      const button = letter === "a" || letter === "d" ? section.current?.querySelector<HTMLButtonElement>(`[data-key=${letter}]`) : null;
      if (!button) return;
      event.preventDefault();
      button.click();
    };
    addEventListener("keydown", key);
    return () => removeEventListener("keydown", key);
  }, []);
}

/** What is asked, in one place that scrolls, and says so while a part of it was not in sight. */
function Asked({ children }: { children: ComponentChildren }) {
  const box = useRef<HTMLDivElement>(null);
  const [left, setLeft] = useState(0);
  const look = (): void => {
    const one = box.current;
    if (one) setLeft(Math.max(0, Math.round(one.scrollHeight - one.scrollTop - one.clientHeight)));
  };
  useEffect(() => {
    if (!box.current) return;
    const sizes = new ResizeObserver(look);
    sizes.observe(box.current);
    for (const child of box.current.children) sizes.observe(child);
    return () => sizes.disconnect();
  }, []);
  return (
    <div class="asked-frame">
      <div class="asked" ref={box} onScroll={look} tabIndex={0} role="group" aria-label="What is asked">{children}</div>
      {left > 8 && <button type="button" class="more-below" onClick={() => box.current?.scrollBy({ top: box.current.clientHeight - 24 })}>More below</button>}
    </div>
  );
}

function Permission({ store, state, question }: Props<"permission">) {
  const request = question.request;
  const [feedback, setFeedback] = useState<string | null>(null);
  const [edited, setEdited] = useState<string | null>(null);
  const [wider, setWider] = useState(false);
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);
  // Nobody allows what the page cannot show.
  const [unseen, setUnseen] = useState(false);
  const scope = approvalScope(request, state.folder);
  const call = state.rows.concat(...Object.values(state.agents).map((agent) => agent.rows)).find((row) => row.kind === "call" && row.key === question.rowKey);
  const args = call?.kind === "call" ? call.args : undefined;
  const decide = async (result: any): Promise<void> => {
    setBusy(true);
    await store.decide(state.id, question, result);
    setBusy(false);
  };
  const approveEdited = (): void => {
    try {
      const value = JSON.parse(edited!);
      if (value === null || typeof value !== "object" || Array.isArray(value)) throw new Error("expected a JSON object");
      void decide({ kind: "approve-once", modifiedArgs: value });
    } catch (error) {
      setProblem(error instanceof Error ? error.message : String(error));
    }
  };
  const canEdit = args !== null && typeof args === "object";
  const back = (): void => { setFeedback(null); setEdited(null); setWider(false); };
  return (
    <>
      <h2 tabIndex={-1}>{questionTitle(request)}</h2>
      <Asked>
        <Boundary what="this request: deny it, or answer elsewhere" onFailed={() => setUnseen(true)}><RequestView id={question.id} request={request} folder={state.folder} /></Boundary>
        {request.warning && <p class="note warning"><Icon name="warning" size={14} /><span>{request.warning}</span></p>}
        {request.requestSandboxBypassReason && <p class="note warning"><Icon name="warning" size={14} /><span>{request.requestSandboxBypassReason}</span></p>}
        {request.resolvedPath && <p class="note warning"><Icon name="warning" size={14} /><span>This leads to {request.resolvedPath}</span></p>}
      </Asked>
      {edited !== null && (
        <label class="field">Arguments of the call, as JSON
          <textarea rows={Math.min(14, edited.split("\n").length + 1)} spellcheck={false} value={edited} onInput={(event) => setEdited(event.currentTarget.value)} />
          {problem && <span class="note error">{problem}</span>}
        </label>
      )}
      {feedback !== null && (
        <label class="field">What should the model do instead? Without an answer, its turn ends.
          <textarea rows={2} autoFocus value={feedback} onInput={(event) => setFeedback(event.currentTarget.value)} />
        </label>
      )}
      {/* Another choice is at the place of the last one. */}
      <Settled class="decide" key={edited !== null ? "edit" : feedback !== null ? "deny" : wider ? "wider" : "choose"}>
        {wider && (
          <div class="choices wider" role="group" aria-label="More ways to allow">
            {scope && <button type="button" disabled={busy} onClick={() => void decide({ kind: "approve-for-session" })}>Allow for this session<small>{scope}</small></button>}
            {scope && <button type="button" disabled={busy} onClick={() => void decide({ kind: "approve-for-location" })}>Allow in this project<small>{scope}, in later sessions too</small></button>}
            {canEdit && <button type="button" disabled={busy} onClick={() => { setWider(false); setEdited(JSON.stringify(args, null, 2)); }}>Change it first…<small>you edit its arguments</small></button>}
          </div>
        )}
        {/* Denying is always at the same place. */}
        <div class="decide-row">
          {feedback !== null
            ? <button type="button" class="danger" data-key="d" disabled={busy} onClick={() => void decide({ kind: "reject", ...(feedback.trim() ? { feedback: feedback.trim() } : {}) })}>{feedback.trim() ? "Deny, and tell the model" : "Deny, and end the turn"}</button>
            : <button type="button" class="danger" data-key="d" aria-keyshortcuts="Alt+D" title="Deny, with or without a reason (Alt+D)" disabled={busy} onClick={() => { setEdited(null); setWider(false); setFeedback(""); }}>Deny…</button>}
          <span class="grow" />
          {(feedback !== null || edited !== null) && <button type="button" onClick={back}>Back</button>}
          {edited !== null && <button type="button" class="primary" data-key="a" disabled={busy || unseen} onClick={approveEdited}>Allow this changed call once</button>}
          {feedback === null && edited === null && (
            <span class="split">
              <button type="button" class="primary" data-key="a" aria-keyshortcuts="Alt+A" title="Allow this call only (Alt+A)" disabled={busy || unseen} onClick={() => void decide({ kind: "approve-once" })}>Allow once</button>
              {(scope || canEdit) && <button type="button" class="primary split-more" aria-label="More ways to allow" aria-expanded={wider} title="More ways to allow" disabled={busy || unseen} onClick={() => setWider(!wider)}><Icon name="chevron" size={14} /></button>}
            </span>
          )}
        </div>
      </Settled>
    </>
  );
}

/** Everything that a request covers, in full. */
function RequestView({ id, request, folder }: { id: string; request: any; folder: string }) {
  switch (request.kind) {
    case "shell": return (
      <>
        {request.intention && request.intention !== request.fullCommandText && <p>{request.intention}</p>}
        <pre class="code"><code>{request.fullCommandText}</code></pre>
        <p class="faint">
          {request.sandboxed === true ? "Runs in the sandbox" : request.sandboxed === false ? "Runs outside of the sandbox" : "Runs without a sandbox"}
          {request.sandboxHosts?.length ? `, and reaches ${request.sandboxHosts.join(", ")}` : ""}
          {request.possiblePaths?.length ? ` · paths: ${request.possiblePaths.join(", ")}` : ""}
          {request.possibleUrls?.length ? ` · addresses: ${request.possibleUrls.map((one: any) => one.url).join(", ")}` : ""}
        </p>
      </>
    );
    case "write": return <ChangeAsked id={id} request={request} folder={folder} />;
    case "read": return <p><code>{request.path}</code></p>;
    case "url": return <p><code>{request.url}</code>{request.redirectedFrom && <> redirected from <code>{request.redirectedFrom}</code></>}</p>;
    // Later sessions see all of these.
    case "memory": return (
      <blockquote>
        {request.fact}
        {["action", "direction", "subject", "citations", "reason", "scope", "repoNwo"].map((name) => request[name] && <footer key={name}>{name}: {request[name]}</footer>)}
      </blockquote>
    );
    default: return (
      <>
        <p><strong>{request.toolName ?? request.kind}</strong>{request.serverName ? ` of the MCP server ${request.serverName}` : ""} {request.toolDescription}</p>
        {request.hookMessage && <p class="note warning">{request.hookMessage}</p>}
        <pre class="code"><code>{JSON.stringify(request.args ?? request.toolArgs ?? {}, null, 2)}</code></pre>
      </>
    );
  }
}

/** A change as a diff; where an editor shows it, only what it is about, so that it is not decided in two places. */
function ChangeAsked({ id, request, folder }: { id: string; request: any; folder: string }) {
  const { shownChanges } = useContext(HostContext);
  const [here, setHere] = useState(false);
  const { added, removed } = countChanges(request.diff ?? "");
  const name = folder && String(request.fileName).startsWith(`${folder}/`) ? String(request.fileName).slice(folder.length + 1) : request.fileName;
  if (!request.diff) return <p><code>{name}</code></p>;
  if (shownChanges?.ids.value.has(id) && !here) {
    return <p class="in-editor"><code>{name}</code> <span class="added">+{added}</span> <span class="removed">−{removed}</span> <span class="faint">The editor shows the change.</span> <button type="button" class="link" onClick={() => setHere(true)}>Show it here</button></p>;
  }
  return <Diff text={request.diff} folder={folder} />;
}

function Input({ store, state, question }: Props<"input">) {
  const [text, setText] = useState("");
  const answer = (value: string, wasFreeform: boolean): void => void store.answer(state.id, question, { answer: value, wasFreeform });
  return (
    <>
      <h2 tabIndex={-1}>The model asks</h2>
      <div class="markdown" dir="auto"><Html html={renderMarkdown(question.question)} /></div>
      <div class="choices">
        {question.choices.map((choice) => <button type="button" key={choice} onClick={() => answer(choice, false)}>{choice}</button>)}
      </div>
      {question.free && (
        <form class="inline" onSubmit={(event) => { event.preventDefault(); if (text.trim()) answer(text.trim(), true); }}>
          <label class="field grow"><span class="hidden">Your answer</span><input value={text} placeholder={question.choices.length ? "Something else…" : "Your answer"} onInput={(event) => setText(event.currentTarget.value)} /></label>
          <button type="submit" class="primary" disabled={!text.trim()}>Answer</button>
        </form>
      )}
    </>
  );
}

const PLAN_ACTIONS: Record<string, string> = {
  interactive: "Yes, and ask before each change",
  autopilot: "Yes, and go on to the end without questions about the plan",
  autopilot_fleet: "Yes, with several agents at once",
  exit_only: "Yes, but wait for my next prompt",
};

function Plan({ store, state, question }: Props<"plan">) {
  const [feedback, setFeedback] = useState("");
  return (
    <>
      <h2 tabIndex={-1}>Is this plan right?</h2>
      <div class="markdown plan" dir="auto" tabIndex={0} role="group" aria-label="Plan"><Html html={renderMarkdown(question.plan || question.summary)} /></div>
      <div class="choices">
        {question.actions.map((action) => (
          <button type="button" key={action} class={action === question.recommended ? "primary" : ""} onClick={() => void store.answer(state.id, question, { approved: true, selectedAction: action })}>{PLAN_ACTIONS[action] ?? action}</button>
        ))}
      </div>
      <form class="inline" onSubmit={(event) => { event.preventDefault(); void store.answer(state.id, question, { approved: false, ...(feedback.trim() ? { feedback: feedback.trim() } : {}) }); }}>
        <label class="field grow"><span class="hidden">What should change</span><input value={feedback} placeholder="What should change?" onInput={(event) => setFeedback(event.currentTarget.value)} /></label>
        <button type="submit" class="danger">No</button>
      </form>
    </>
  );
}

function Switch({ store, state, question }: Props<"switch">) {
  return (
    <>
      <h2 tabIndex={-1}>The model is rate limited{question.code ? ` (${question.code})` : ""}. Let the provider choose another one?</h2>
      <div class="choices">
        <button type="button" class="primary" onClick={() => void store.answer(state.id, question, "yes")}>Yes</button>
        <button type="button" onClick={() => void store.answer(state.id, question, "yes_always")}>Yes<small>for the rest of this session</small></button>
        <button type="button" class="danger" onClick={() => void store.answer(state.id, question, "no")}>No, try again</button>
      </div>
    </>
  );
}

/** Words of questions that programs must not ask in forms. */
const SECRETS = /passwor|passphrase|\bsecret|api.?key|\btoken\b|credential|\bpin\b/i;
const INPUT_TYPES: Record<string, "date" | "email" | "url"> = { date: "date", email: "email", uri: "url" };

/** Return the type of the input for a field, so that the browser refuses what does not fit. */
function inputType(field: any): "number" | "date" | "email" | "url" | "text" {
  return field.type === "number" || field.type === "integer" ? "number" : INPUT_TYPES[field.format] ?? "text";
}

function Form({ store, state, question }: Props<"form">) {
  const properties: [string, any][] = Object.entries(question.schema?.properties ?? {});
  const required = new Set<string>(question.schema?.required ?? []);
  const [values, setValues] = useState<Record<string, any>>(() => Object.fromEntries(properties.map(([name, field]) => [name, field.default ?? (field.type === "boolean" ? false : "")])));
  const set = (name: string, value: any): void => setValues({ ...values, [name]: value });
  const submit = (event: Event): void => {
    event.preventDefault();
    const content = Object.fromEntries(properties.flatMap(([name, field]) => {
      const value = values[name];
      if (value === "" && !required.has(name)) return [];
      return [[name, field.type === "number" || field.type === "integer" ? Number(value) : value]];
    }));
    void store.answer(state.id, question, { action: "accept", content });
  };
  return (
    <form onSubmit={submit}>
      <h2 tabIndex={-1}>{question.source ? `The MCP server ${question.source} asks` : "A form"}</h2>
      <p class="plain form-message" dir="auto" tabIndex={0}>{question.message}</p>
      {SECRETS.test(`${question.message} ${properties.flat().map((one) => one?.title ?? one?.description ?? one).join(" ")}`) && <p class="note warning">Forms are not for passwords and keys: whoever asks here can read, keep and pass on what you enter.</p>}
      {question.url && <p><code>{question.url}</code></p>}
      {properties.map(([name, field]) => (
        <label class="field" key={name}>
          {field.title ?? name}{required.has(name) ? " (required)" : ""}
          {field.description && <small class="faint">{field.description}</small>}
          {field.type === "boolean" ? <input type="checkbox" checked={values[name]} onChange={(event) => set(name, event.currentTarget.checked)} />
            : Array.isArray(field.enum) ? (
              <select value={values[name]} required={required.has(name)} onChange={(event) => set(name, event.currentTarget.value)}>
                <option value="" />
                {field.enum.map((one: string, at: number) => <option key={one} value={one}>{field.enumNames?.[at] ?? one}</option>)}
              </select>
            ) : <input type={inputType(field) as "text"} step={field.type === "number" ? "any" : undefined} min={field.minimum} max={field.maximum} required={required.has(name)} value={values[name]} onInput={(event) => set(name, event.currentTarget.value)} />}
        </label>
      ))}
      <div class="choices">
        <button type="submit" class="primary">{question.url ? "I have opened it" : "Send"}</button>
        <button type="button" class="danger" onClick={() => void store.answer(state.id, question, { action: "decline" })}>Decline</button>
      </div>
    </form>
  );
}
