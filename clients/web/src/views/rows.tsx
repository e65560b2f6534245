// The rows of a transcript: prompts, answers, reasoning, calls with their sub-agents, and notes.

import { signal } from "@preact/signals";
import type { ComponentChildren } from "preact";
import { useEffect, useMemo, useRef } from "preact/hooks";
import { languageOf, renderCode } from "../markdown.ts";
import { countChanges, toolText, workMs } from "../state/calls.ts";
import { count, dollars, duration, tokens } from "../state/format.ts";
import { unaskedBy } from "../state/permissions.ts";
import { filesOf, toolsOf, unusualOf, type RunFacts } from "../state/runs.ts";
import type { Agent, CallRow, Row, SessionState } from "../state/types.ts";
import { href, route } from "../route.ts";
import { Arguments, Code } from "./arguments.tsx";
import { Boundary, Clock, Copy, copy, Html, Icon, Menu, MenuItem } from "./common.tsx";
import { Diff } from "./diff.tsx";
import { PromptText } from "./folded.tsx";
import { Markdown } from "./markdown.tsx";

export interface RowActions {
  fork: (eventId: string) => void;
  rewind: (eventId: string) => void;
}

/** What a person has opened or closed, by the row, so that it stays so while the list scrolls. */
const opened = signal<ReadonlyMap<string, boolean>>(new Map());
const LONGEST_OUTPUT = 20_000;
const NESTED_ROWS = 60;

function toggle(key: string, open: boolean): void {
  opened.value = new Map(opened.value).set(key, open);
}

export function RowView(props: { row: Row; state: SessionState; actions: RowActions | null }) {
  return <Boundary what="this part of the session"><Content {...props} /></Boundary>;
}

function Content({ row, state, actions }: { row: Row; state: SessionState; actions: RowActions | null }) {
  switch (row.kind) {
    case "prompt": return <Prompt row={row} id={state.id} actions={actions} />;
    case "answer": return (
      <section class="row answer">
        <Copyable streaming={row.streaming}><Markdown text={row.text} streaming={row.streaming} id={row.key} /></Copyable>
        {row.interrupted && <p class="faint">Interrupted</p>}
        <footer class="row-foot"><Copy text={row.text} what="the answer" /><WireLink id={state.id} eventId={row.eventId} /><Clock at={row.time} />{row.model && <span>{row.model}</span>}</footer>
      </section>
    );
    case "thought": return (
      <details class="row thought" open={opened.value.get(row.key) ?? false} onToggle={(event) => toggle(row.key, event.currentTarget.open)}>
        <summary><Icon name="chevron" size={14} /> {row.streaming ? "Thinking…" : "Reasoning"} <span class="faint">{firstLine(row.text)}</span></summary>
        {(opened.value.get(row.key) ?? false) && <Markdown text={row.text} streaming={row.streaming} id={row.key} />}
      </details>
    );
    case "note": return <p class={`row note ${row.level}`}>{row.level !== "info" && <Icon name="warning" size={14} />}<span>{row.text}</span></p>;
    case "call": return <Call row={row} state={state} />;
  }
}

function firstLine(text: string): string {
  return text.trim().split("\n")[0]!.slice(0, 120);
}

export function WireLink({ id, eventId }: { id: string; eventId: string }) {
  if (route.value.view !== "session") return null;
  return <a class="wire-link" href={href({ view: "session", id, tab: "wire", at: eventId })} title="Show on the wire" aria-label="Show on the wire"><Icon name="wire" size={13} /></a>;
}

function Prompt({ row, id, actions }: { row: Extract<Row, { kind: "prompt" }>; id: string; actions: RowActions | null }) {
  const isPerson = row.source === null || row.source === "user";
  return (
    <section class={isPerson ? "row prompt" : "row prompt other"}>
      <header>
        <h2 tabIndex={-1}>{isPerson ? "You" : row.source?.startsWith("agent-") ? "Task" : `From ${row.source}`}</h2>
        {row.delivery === "steering" && <span class="badge">steering</span>}
        <Clock at={row.time} />
        <WireLink id={id} eventId={row.eventId} />
        {actions && isPerson && (
          <Menu label="Actions for this prompt" icon="more">
            <MenuItem onClick={() => actions.fork(row.eventId)}>Fork from here</MenuItem>
            <MenuItem onClick={() => actions.rewind(row.eventId)}>Rewind to before this…</MenuItem>
            <MenuItem onClick={() => void navigator.clipboard?.writeText(row.text)}>Copy</MenuItem>
          </Menu>
        )}
      </header>
      <PromptText text={row.text} id={`${id} ${row.key}`} />
      {row.commands.map((line, at) => <p key={at} class="faint">with the output of <code>! {line}</code></p>)}
      {row.attachments.length > 0 && (
        <ul class="attachments">
          {row.attachments.map((one, at) => <li key={at}>{one.picture ? <img src={one.picture} alt={one.name} /> : <span class="badge"><Icon name="clip" size={12} /> {one.name}</span>}</li>)}
        </ul>
      )}
    </section>
  );
}

const STATUS: Record<CallRow["status"], string> = {
  writing: "being written", running: "running", waiting: "waits for you", done: "done", failed: "failed",
  denied: "denied", cancelled: "cancelled", unfinished: "unfinished",
};

function Call({ row, state }: { row: CallRow; state: SessionState }) {
  const agent = row.agentId ? state.agents[row.agentId] : undefined;
  const changes = useMemo(() => (row.diff ? countChanges(row.diff) : null), [row.diff]);
  const isOpen = opened.value.get(row.key) ?? (row.diff !== "" || row.pictures.length > 0 || row.status === "failed" || row.status === "running" || agent?.status === "running");
  const ms = workMs(row, state.changed);
  const unusual = unusualOf(row, state);
  return (
    <details class={`row call ${row.status}`} open={isOpen} onToggle={(event) => {
      if (event.currentTarget.open !== isOpen) toggle(row.key, event.currentTarget.open);
    }}>
      <summary>
        <Icon name="chevron" size={14} />
        <span class={`dot ${row.status}`} title={STATUS[row.status]}><span class="hidden">{STATUS[row.status]}: </span></span>
        <span class="tool">{agent ? agent.name : row.tool}</span>
        <code class="subject">{row.argsText || toolText(row.args, row.intention)}</code>
        <span class="call-facts">
          {changes && <><span class="added">+{changes.added}</span> <span class="removed">−{changes.removed}</span></>}
          {unusual.map((one) => <span key={one.text} class={one.bad ? "badge bad" : "badge"} title={one.title}>{one.text}</span>)}
          {row.status !== "done" && !unusual.some((one) => one.bad) && <span class={`badge ${row.status === "failed" || row.status === "unfinished" ? "bad" : ""}`}>{row.status === "writing" && !row.argsText ? "waits its turn" : STATUS[row.status]}</span>}
          {ms !== null && row.status !== "unfinished" && <span class="faint">{duration(ms)}</span>}
        </span>
      </summary>
      {isOpen && <CallBody row={row} state={state} agent={agent} />}
    </details>
  );
}

/** Neighbouring steps in one line, which opens to the steps. `opens` is set if one of them is the target of a link. */
export function Steps({ id, rows, state, opens }: { id: string; rows: readonly Row[]; state: SessionState; opens: boolean }) {
  const isOpen = opened.value.get(id) ?? opens;
  const calls = rows.filter((row): row is CallRow => row.kind === "call");
  const ms = calls.reduce((sum, row) => sum + (row.end === null ? 0 : workMs(row, row.end) ?? 0), 0);
  const subjects = calls.map((row) => toolText(row.args, row.intention).split("\n")[0]).join(" · ");
  return (
    <details class="row steps" open={isOpen} onToggle={(event) => {
      if (event.currentTarget.open !== isOpen) toggle(id, event.currentTarget.open);
    }}>
      <summary>
        <Icon name="chevron" size={14} /> <span class="tool">{toolsOf(rows)}</span> <span class="subject">{isOpen ? "" : subjects.slice(0, 300)}</span>
        <span class="call-facts"><span class="faint">{[calls.length > 0 ? count(calls.length, "call") : "", ms > 0 ? duration(ms) : ""].filter(Boolean).join(" · ")}</span></span>
      </summary>
      {isOpen && rows.map((row) => <RowView key={row.key} row={row} state={state} actions={null} />)}
    </details>
  );
}

/** The end of a run: its time, tokens, cost and changed files. */
export function RunFoot({ state, run, facts, rows }: { state: SessionState; run: number; facts: RunFacts | undefined; rows: readonly Row[] }) {
  const files = useMemo(() => [...filesOf(rows, state)], [rows.length, state.changesVersion]);
  const one = state.runs[run];
  if (!one || !facts) return null;
  const isOpen = one.end === null && state.working;
  const times = [["model", facts.modelMs], ["tools", facts.toolsMs], ["waiting for you", facts.waitingMs]] as const;
  const parts = times.filter(([, ms]) => ms > 0).map(([name, ms]) => `${name} ${duration(ms)}`);
  return (
    <footer class="row run-foot" aria-label={`Run ${run + 1}`}>
      {!one.ok && one.stop && <span class="badge bad" title={one.stop}>{rows.some((row) => row.kind === "note" && row.level === "error") ? one.stop.split(":")[0] : one.stop}</span>}
      <span>{!isOpen ? "" : state.questions.length > 0 ? "waits for you: " : "so far: "}{duration(facts.totalMs)}{parts.length > 0 ? ` (${parts.join(", ")})` : ""}</span>
      {facts.tokensIn + facts.tokensOut > 0 && <span>{tokens(facts.tokensIn)} in, {tokens(facts.tokensOut)} out</span>}
      {facts.costUsd !== null && <span>{dollars(facts.costUsd)}</span>}
      {files.length > 0 && (
        <span class="run-files">
          {files.slice(0, 4).map(([path, lines]) => <a key={path} href={href({ view: "session", id: state.id, tab: "changes", at: path })}>{path.slice(path.lastIndexOf("/") + 1)} <span class="added">+{lines.added}</span> <span class="removed">−{lines.removed}</span></a>)}
          {files.length > 4 && <a href={href({ view: "session", id: state.id, tab: "changes", at: null })}>{count(files.length - 4, "more file")}</a>}
        </span>
      )}
    </footer>
  );
}

/** Adds a button to each block of code of a finished answer. */
function Copyable({ streaming, children }: { streaming: boolean; children: ComponentChildren }) {
  const ref = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (streaming) return;
    for (const block of ref.current?.querySelectorAll("pre") ?? []) {
      if (block.parentElement?.classList.contains("code-block")) continue;
      const button = document.createElement("button");
      button.type = "button";
      button.className = "copy";
      button.textContent = "Copy";
      button.addEventListener("click", () => void copy(block.textContent ?? "", button));
      const frame = document.createElement("div");
      frame.className = "code-block";
      block.replaceWith(frame);
      frame.append(block, button);
    }
  });
  return <div ref={ref} class="copyable">{children}</div>;
}

function CallBody({ row, state, agent }: { row: CallRow; state: SessionState; agent: Agent | undefined }) {
  const command = (row.args as { command?: unknown } | null)?.command;
  return (
    <div class="call-body">
      {row.intention && row.intention !== command && !agent && <p class="faint">{row.intention}</p>}
      {typeof command === "string" ? <Code label="Command" text={command} language="bash" /> : row.args !== undefined && row.args !== null && !row.diff && !agent && (
        <Arguments row={row} folder={state.folder} />
      )}
      {row.decisions.filter((decision) => !decision.allowed || decision.feedback).map((decision) => (
        <p key={decision.requestId} class={decision.allowed ? "decision" : "decision bad"}>
          <Icon name={decision.allowed ? "check" : "cross"} size={14} />
          <span>{decision.allowed ? "Approved" : "Denied"} by {decision.by}{decision.feedback ? `: “${decision.feedback}”` : ""}{decision.time - decision.asked > 500 ? `, after ${duration(decision.time - decision.asked)}` : ""}</span>
        </p>
      ))}
      {row.diff && <Diff text={row.diff} folder={state.folder} />}
      {row.pictures.map((picture, at) => <img key={at} class="picture" src={picture} alt={`Picture ${at + 1} of ${row.tool}`} />)}
      {row.output && !agent && <Output row={row} />}
      {agent && <AgentView agent={agent} state={state} />}
      <footer class="row-foot">
        <WireLink id={state.id} eventId={row.eventId} />
        {row.exitCode !== null && <span>exit code {row.exitCode}</span>}
        {row.server && <span>MCP server {row.server}</span>}
        {row.sandboxed === true && <span>in the sandbox</span>}
        {row.decisions.filter((decision) => decision.allowed && !decision.feedback).map((decision) => <span key={decision.requestId}>approved by {decision.by}</span>)}
        {row.decisions.length === 0 && row.unasked && <span>not asked: {[unaskedBy(row.unasked).by, row.unasked.reason].filter(Boolean).join(", ")}</span>}
        {row.output && <Copy text={row.output} what="the output" />}
        {row.start !== null && <Clock at={row.start} />}
      </footer>
    </div>
  );
}

function Output({ row }: { row: CallRow }) {
  const key = `output ${row.key}`;
  const isLong = row.output.length > LONGEST_OUTPUT;
  const text = isLong && !opened.value.get(key) ? row.output.slice(0, LONGEST_OUTPUT) : row.output;
  const path = (row.args as { path?: unknown } | null)?.path;
  const language = row.tool === "view" && row.status === "done" && typeof path === "string" ? languageOf(path) : "";
  const html = useMemo(() => (language ? renderCode(text, language) : null), [text, language]);
  return (
    <>
      <pre class="output" tabIndex={0} role="group" aria-label="Output">{html ? <Html as="code" html={html} /> : text}</pre>
      {isLong && !opened.value.get(key) && <button type="button" class="link" onClick={() => toggle(key, true)}>Show all of the output ({Math.round(row.output.length / 1024)} KB)</button>}
    </>
  );
}

function AgentView({ agent, state }: { agent: Agent; state: SessionState }) {
  const key = `agent ${agent.id}`;
  const all = opened.value.get(key) ?? false;
  const rows = all ? agent.rows : agent.rows.slice(-NESTED_ROWS);
  const facts = [
    agent.type, agent.model, agent.calls !== null ? count(agent.calls, "call") : null, agent.tokens !== null ? `${tokens(agent.tokens)} tokens` : null,
    duration((agent.end ?? state.changed) - agent.start),
  ].filter(Boolean);
  return (
    <div class="agent" role="group" aria-label={`Sub-agent ${agent.name}`}>
      <p class="agent-head"><Icon name="robot" size={15} /> <strong>{agent.name}</strong>{agent.status !== "completed" && <span class="badge">{agent.status}</span>} <span class="faint">{facts.join(" · ")}</span></p>
      {agent.error && <p class="note error">{agent.error}</p>}
      {rows.length < agent.rows.length && <button type="button" class="link" onClick={() => toggle(key, true)}>Show {agent.rows.length - rows.length} earlier entries</button>}
      {rows.map((row) => <RowView key={row.key} row={row} state={state} actions={null} />)}
    </div>
  );
}
