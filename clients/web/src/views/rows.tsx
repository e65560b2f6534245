// The rows of a transcript: prompts, answers, reasoning, calls with their sub-agents, and notes.

import { signal } from "@preact/signals";
import { useMemo } from "preact/hooks";
import { languageOf, renderCode } from "../markdown.ts";
import { countChanges, toolText } from "../state/calls.ts";
import { clock, count, duration, tokens } from "../state/format.ts";
import type { Agent, CallRow, Row, SessionState } from "../state/types.ts";
import { href, route } from "../route.ts";
import { Boundary, Html, Icon, Menu, MenuItem } from "./common.tsx";
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
        <Markdown text={row.text} streaming={row.streaming} id={row.key} />
        {row.interrupted && <p class="faint">Interrupted</p>}
        <footer class="row-foot"><WireLink id={state.id} eventId={row.eventId} /><time>{clock(row.time)}</time>{row.model && <span>{row.model}</span>}</footer>
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
        <h2>{isPerson ? "You" : row.source?.startsWith("agent-") ? "Task" : `From ${row.source}`}</h2>
        {row.delivery === "steering" && <span class="badge">steering</span>}
        <time>{clock(row.time)}</time>
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
  const ms = row.start !== null ? (row.end ?? state.changed) - row.start : null;
  const last = row.decisions[row.decisions.length - 1];
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
          {row.exitCode !== null && row.exitCode !== 0 && <span class="badge bad">exit {row.exitCode}</span>}
          {last && <span class={last.allowed ? "badge" : "badge bad"} title={`${last.allowed ? "Approved" : "Denied"} by ${last.by}`}>{last.allowed ? "approved" : "denied"}</span>}
          {row.status !== "done" && !(last && !last.allowed) && <span class={`badge ${row.status === "failed" || row.status === "unfinished" ? "bad" : ""}`}>{STATUS[row.status]}</span>}
          {ms !== null && row.status !== "unfinished" && <span class="faint">{duration(ms)}</span>}
        </span>
      </summary>
      {isOpen && <CallBody row={row} state={state} agent={agent} />}
    </details>
  );
}

function CallBody({ row, state, agent }: { row: CallRow; state: SessionState; agent: Agent | undefined }) {
  const command = (row.args as { command?: unknown } | null)?.command;
  return (
    <div class="call-body">
      {row.intention && row.intention !== command && !agent && <p class="faint">{row.intention}</p>}
      {typeof command === "string" ? <Code label="Command" text={command} language="bash" /> : row.args !== undefined && row.args !== null && !row.diff && !agent && (
        <Code label="Arguments" text={JSON.stringify(row.args, null, 2)} language="json" />
      )}
      {row.decisions.map((decision) => (
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
        {row.start !== null && <time>{clock(row.start)}</time>}
      </footer>
    </div>
  );
}

function Code({ label, text, language }: { label: string; text: string; language: string }) {
  const html = useMemo(() => renderCode(text, language), [text, language]);
  return <pre class="code" tabIndex={0} role="group" aria-label={label}><Html as="code" html={html} /></pre>;
}

function Output({ row }: { row: CallRow }) {
  const key = `output ${row.key}`;
  const isLong = row.output.length > LONGEST_OUTPUT;
  const text = isLong && !opened.value.get(key) ? row.output.slice(0, LONGEST_OUTPUT) : row.output;
  const path = (row.args as { path?: unknown } | null)?.path;
  const language = row.tool === "view" && typeof path === "string" ? languageOf(path) : "";
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
      <p class="agent-head"><Icon name="robot" size={15} /> <strong>{agent.name}</strong> <span class="badge">{agent.status}</span> <span class="faint">{facts.join(" · ")}</span></p>
      {agent.error && <p class="note error">{agent.error}</p>}
      {rows.length < agent.rows.length && <button type="button" class="link" onClick={() => toggle(key, true)}>Show {agent.rows.length - rows.length} earlier entries</button>}
      {rows.map((row) => <RowView key={row.key} row={row} state={state} actions={null} />)}
    </div>
  );
}
