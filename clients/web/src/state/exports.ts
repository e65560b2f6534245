// A session as a file, and its messages as steps of `jumpseat script`. Pure.

import { countChanges, toolText } from "./calls.ts";
import { dateTime, duration } from "./format.ts";
import type { Facts } from "./facts.ts";
import type { Row, SessionState, WireEvent } from "./types.ts";

/** Return the events of a session as JSON lines. Events that are not stored are left out. */
export function asJsonLines(state: SessionState): string {
  return state.events.filter((event) => !event.ephemeral).map((event) => `${JSON.stringify(event)}\n`).join("");
}

/** Return a session as Markdown. */
export function asMarkdown(state: SessionState, facts: Facts): string {
  const lines = [`# ${state.title || "Session"}`, "", `${state.folder} · ${dateTime(state.started)} · ${facts.models.map((one) => one.model).join(", ") || state.model || ""}`, ""];
  const add = (rows: readonly Row[], depth: number): void => {
    for (const row of rows) {
      if (row.kind === "prompt") lines.push(`## ${"> ".repeat(depth)}Prompt`, "", row.text, "");
      else if (row.kind === "answer") lines.push(row.text, "");
      else if (row.kind === "thought") lines.push("<details><summary>Reasoning</summary>", "", row.text, "", "</details>", "");
      else if (row.kind === "note") lines.push(`*${row.text}*`, "");
      else {
        const ms = row.start !== null && row.end !== null ? `, ${duration(row.end - row.start)}` : "";
        const changes = row.diff ? countChanges(row.diff) : null;
        lines.push(`**${row.tool}** \`${toolText(row.args, row.intention).split("\n")[0]}\` (${row.status}${changes ? `, +${changes.added} -${changes.removed}` : ""}${ms})`, "");
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
  const longest = Math.max(2, ...(text.match(/`+/g) ?? []).map((run) => run.length));
  const marks = "`".repeat(longest + 1);
  return `${marks}${language}\n${text}\n${marks}`;
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
