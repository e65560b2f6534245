// A session as a file, and its messages as steps of `jumpseat script`. Pure.

import { countChanges, toolText } from "./calls.ts";
import { dateTime, duration } from "./format.ts";
import type { Facts } from "./facts.ts";
import { plainMarkdown } from "./plain_markdown.ts";
import type { Row, SessionState, WireEvent } from "./types.ts";

/** Return the events of a session as JSON lines. Events that are not stored are left out. */
export function asJsonLines(state: SessionState): string {
  return state.events.filter((event) => !event.ephemeral).map((event) => `${JSON.stringify(event)}\n`).join("");
}

/** Return a session as Markdown. What looks like HTML in it is text. */
export function asMarkdown(state: SessionState, facts: Facts): string {
  const lines = [`# ${plainMarkdown(state.title) || "Session"}`, "", `${state.folder} · ${dateTime(state.started)} · ${facts.models.map((one) => one.model).join(", ") || state.model || ""}`, ""];
  const add = (rows: readonly Row[], depth: number): void => {
    for (const row of rows) {
      if (row.kind === "prompt") lines.push(`## ${"> ".repeat(depth)}Prompt`, "", plainMarkdown(row.text), "");
      else if (row.kind === "answer") lines.push(plainMarkdown(row.text), "");
      else if (row.kind === "thought") lines.push("<details><summary>Reasoning</summary>", "", plainMarkdown(row.text), "", "</details>", "");
      else if (row.kind === "note") lines.push(`*${plainMarkdown(row.text)}*`, "");
      else {
        const ms = row.start !== null && row.end !== null ? `, ${duration(row.end - row.start)}` : "";
        const changes = row.diff ? countChanges(row.diff) : null;
        lines.push(`**${plainMarkdown(row.tool)}** ${codeOf(toolText(row.args, row.intention).split(/[\r\n]/)[0]!)} (${row.status}${changes ? `, +${changes.added} -${changes.removed}` : ""}${ms})`, "");
        if (row.diff || row.output) lines.push(fence(row.diff ? "diff" : "", row.diff || row.output), "");
        const agent = row.agentId ? state.agents[row.agentId] : undefined;
        if (agent) add(agent.rows, depth + 1);
      }
    }
  };
  add(state.rows, 0);
  return `${lines.join("\n").trimEnd()}\n`;
}

function fence(language: string, text: string): string {
  const marks = marksAround(text, 3);
  return `${marks}${language}\n${text}\n${marks}`;
}

function codeOf(text: string): string {
  const marks = marksAround(text, 1);
  return text.includes("`") || text.trim() === "" ? `${marks} ${text} ${marks}` : `${marks}${text}${marks}`;
}

/** Return more backticks than any of a text, and at least so many. */
function marksAround(text: string, least: number): string {
  return "`".repeat(Math.max(least, ...(text.match(/`+/g) ?? []).map((run) => run.length + 1)));
}

/** Return an event as a step that waits for it. */
export function eventStep(event: WireEvent): string {
  return `- events:\n    - ${JSON.stringify({ type: event.type, data: event.data })}\n`;
}

/** Return a message of the connection as a step. */
export function messageStep(message: { sent: boolean; kind: string; method: string; body: any }): string {
  if (message.sent && message.kind === "request") {
    return `- call: ${message.method}\n  params: ${JSON.stringify(message.body.params ?? {})}\n`;
  }
  if (message.kind === "request") return `- answer: ${message.method}\n  result: {}\n`;
  if (message.sent) return `- send: ${JSON.stringify(message.body)}\n`;
  if (message.method === "session.event") return eventStep(message.body.params.event);
  const { jsonrpc: _version, id: _id, ...rest } = message.body;
  return `- expect: ${JSON.stringify(rest)}\n`;
}
