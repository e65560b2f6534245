// Questions to the person: approvals with what they grant, questions of the model, plans and forms.

import { useState } from "preact/hooks";
import { renderMarkdown } from "../markdown.ts";
import { approvalScope, questionTitle } from "../state/permissions.ts";
import type { Question, SessionState } from "../state/types.ts";
import type { Store } from "../store.ts";
import { Boundary, Html, Icon, Settled } from "./common.tsx";
import { Diff } from "./diff.tsx";

interface Props<K extends Question["kind"]> {
  store: Store;
  state: SessionState;
  question: Extract<Question, { kind: K }>;
}

export function Questions({ store, state }: { store: Store; state: SessionState }) {
  const question = state.questions[0];
  if (!question) return null;
  const agent = question.agentId ? state.agents[question.agentId] : undefined;
  const more = state.questions.length - 1;
  const props = { store, state, key: question.id };
  return (
    <section class="question" aria-label="A question to you" data-question={question.kind}>
      {agent && <p class="faint"><Icon name="robot" size={14} /> The sub-agent {agent.name} asks</p>}
      <Settled key={question.id}><Boundary what="this question: stop the session, or answer elsewhere">
        {question.kind === "permission" && <Permission {...props} question={question} />}
        {question.kind === "input" && <Input {...props} question={question} />}
        {question.kind === "plan" && <Plan {...props} question={question} />}
        {question.kind === "form" && <Form {...props} question={question} />}
        {question.kind === "switch" && <Switch {...props} question={question} />}
      </Boundary></Settled>
      {more > 0 && <p class="faint">{more === 1 ? "One more question waits" : `${more} more questions wait`}</p>}
    </section>
  );
}

function Permission({ store, state, question }: Props<"permission">) {
  const request = question.request;
  const [feedback, setFeedback] = useState<string | null>(null);
  const [edited, setEdited] = useState<string | null>(null);
  const [problem, setProblem] = useState("");
  const [busy, setBusy] = useState(false);
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
  return (
    <>
      <h2>{questionTitle(request)}</h2>
      <Boundary what="this request"><RequestView request={request} folder={state.folder} /></Boundary>
      {request.warning && <p class="note warning"><Icon name="warning" size={14} /><span>{request.warning}</span></p>}
      {request.requestSandboxBypassReason && <p class="note warning"><Icon name="warning" size={14} /><span>{request.requestSandboxBypassReason}</span></p>}
      {request.resolvedPath && <p class="note warning"><Icon name="warning" size={14} /><span>This leads to {request.resolvedPath}</span></p>}
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
      <Settled class="choices" key={edited !== null ? "edit" : feedback !== null ? "deny" : "choose"}>
        {edited !== null ? (
          <>
            <button type="button" class="primary" disabled={busy} onClick={approveEdited}>Allow this changed call once</button>
            <button type="button" onClick={() => setEdited(null)}>Back</button>
          </>
        ) : feedback !== null ? (
          <>
            <button type="button" class="danger" disabled={busy} onClick={() => void decide({ kind: "reject", ...(feedback.trim() ? { feedback: feedback.trim() } : {}) })}>{feedback.trim() ? "Deny, and tell the model" : "Deny, and end the turn"}</button>
            <button type="button" onClick={() => setFeedback(null)}>Back</button>
          </>
        ) : (
          <>
            <button type="button" class="primary" disabled={busy} onClick={() => void decide({ kind: "approve-once" })}>Allow once<small>this call only</small></button>
            {scope && <button type="button" disabled={busy} onClick={() => void decide({ kind: "approve-for-session" })}>Allow for this session<small>{scope}</small></button>}
            {scope && <button type="button" disabled={busy} onClick={() => void decide({ kind: "approve-for-location" })}>Allow in this project<small>{scope}, in later sessions too</small></button>}
            {args !== null && typeof args === "object" && <button type="button" disabled={busy} onClick={() => setEdited(JSON.stringify(args, null, 2))}>Change it first…<small>you edit its arguments</small></button>}
            <button type="button" class="danger" disabled={busy} onClick={() => setFeedback("")}>Deny…<small>with or without a reason</small></button>
          </>
        )}
      </Settled>
    </>
  );
}

/** Everything that a request covers, in full. */
function RequestView({ request, folder }: { request: any; folder: string }) {
  switch (request.kind) {
    case "shell": return (
      <>
        {request.intention && request.intention !== request.fullCommandText && <p>{request.intention}</p>}
        <pre class="code" tabIndex={0} role="group" aria-label="Command"><code>{request.fullCommandText}</code></pre>
        <p class="faint">
          {request.sandboxed === true ? "Runs in the sandbox" : request.sandboxed === false ? "Runs outside of the sandbox" : "Runs without a sandbox"}
          {request.sandboxHosts?.length ? `, and reaches ${request.sandboxHosts.join(", ")}` : ""}
          {request.possiblePaths?.length ? ` · paths: ${request.possiblePaths.join(", ")}` : ""}
          {request.possibleUrls?.length ? ` · addresses: ${request.possibleUrls.map((one: any) => one.url).join(", ")}` : ""}
        </p>
      </>
    );
    case "write": return <><p><code>{request.fileName}</code></p><Diff text={request.diff ?? ""} folder={folder} /></>;
    case "read": return <p><code>{request.path}</code></p>;
    case "url": return <p><code>{request.url}</code>{request.redirectedFrom && <> redirected from <code>{request.redirectedFrom}</code></>}</p>;
    case "memory": return <blockquote>{request.fact}{request.subject && <footer>{request.subject}</footer>}</blockquote>;
    default: return (
      <>
        <p><strong>{request.toolName ?? request.kind}</strong>{request.serverName ? ` of the MCP server ${request.serverName}` : ""} {request.toolDescription}</p>
        {request.hookMessage && <p class="note warning">{request.hookMessage}</p>}
        <pre class="code" tabIndex={0} role="group" aria-label="Arguments"><code>{JSON.stringify(request.args ?? request.toolArgs ?? {}, null, 2)}</code></pre>
      </>
    );
  }
}

function Input({ store, state, question }: Props<"input">) {
  const [text, setText] = useState("");
  const answer = (value: string, wasFreeform: boolean): void => void store.answer(state.id, question, { answer: value, wasFreeform });
  return (
    <>
      <h2>The model asks</h2>
      <div class="markdown"><Html html={renderMarkdown(question.question)} /></div>
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
      <h2>Is this plan right?</h2>
      <div class="markdown plan" tabIndex={0} role="group" aria-label="Plan"><Html html={renderMarkdown(question.plan || question.summary)} /></div>
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
      <h2>The model is rate limited{question.code ? ` (${question.code})` : ""}. Let the provider choose another one?</h2>
      <div class="choices">
        <button type="button" class="primary" onClick={() => void store.answer(state.id, question, "yes")}>Yes</button>
        <button type="button" onClick={() => void store.answer(state.id, question, "yes_always")}>Yes<small>for the rest of this session</small></button>
        <button type="button" class="danger" onClick={() => void store.answer(state.id, question, "no")}>No, try again</button>
      </div>
    </>
  );
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
      <h2>{question.source ? `${question.source} asks` : "A form"}</h2>
      <p class="plain">{question.message}</p>
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
            ) : <input inputMode={field.type === "number" || field.type === "integer" ? "decimal" : "text"} required={required.has(name)} value={values[name]} onInput={(event) => set(name, event.currentTarget.value)} />}
        </label>
      ))}
      <div class="choices">
        <button type="submit" class="primary">{question.url ? "I have opened it" : "Send"}</button>
        <button type="button" class="danger" onClick={() => void store.answer(state.id, question, { action: "decline" })}>Decline</button>
      </div>
    </form>
  );
}
