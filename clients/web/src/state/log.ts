// The lines of the log: what each event and message is about, in words, and what was decided, as a file. Pure.

import { callOutput, toolText } from "./calls.ts";
import { withoutFolder } from "./diff.ts";
import { dollars, duration, grouped, tokens } from "./format.ts";
import { decidedBy, describeRequest, unaskedBy } from "./permissions.ts";
import type { CallRow, Decision, SessionState, WireEvent } from "./types.ts";
import type { Message } from "../rpc.ts";

export const TOPICS = { model: "Model", tool: "Tools", ask: "Questions and decisions", session: "Session", error: "Problems" } as const;
export type Topic = keyof typeof TOPICS;

export interface LogLine {
  key: string;
  time: number;
  /** Since the last prompt before it, in milliseconds; null before the first one. */
  sincePrompt: number | null;
  topic: Topic;
  /** "→" was sent by the page, "←" received, "●" is stored, "◌" is not. */
  mark: string;
  markText: string;
  name: string;
  /** Command, file, model, decision or text. */
  about: string;
  /** How it ended: "exit 1 · 706 ms". */
  outcome: string;
  bad: boolean;
  body: unknown;
  event: WireEvent | null;
  message: Message | null;
}

const LONGEST_TEXT = 240;

/** Return a line for each event of a session. */
export function eventLines(events: readonly WireEvent[]): LogLine[] {
  return new EventLog().lines(events);
}

/** The lines of a session that grows: only events that have come since are read. */
export class EventLog {
  private reader = new Reader();
  private known: LogLine[] = [];

  lines(events: readonly WireEvent[]): LogLine[] {
    const last = this.known[this.known.length - 1];
    if (last && (last.event !== events[this.known.length - 1] || this.known[0]!.event !== events[0])) {
      this.reader = new Reader();
      this.known = [];
    }
    this.known = [...this.known, ...events.slice(this.known.length).map((event) => this.reader.line(event))];
    return this.known;
  }
}

interface Begun {
  tool: string;
  text: string;
  time: number;
  /** The time of its waits for approvals, in milliseconds. */
  waitedMs: number;
}

/** Reads events in their order, and remembers what later ones refer to. */
class Reader {
  private readonly calls = new Map<string, Begun>();
  private readonly requests = new Map<string, { text: string; time: number; callId?: string }>();
  private readonly turns = new Map<string, number>();
  private prompt: number | null = null;
  /** The folder of the session, which is left out of paths. */
  private folder = "";

  line(event: WireEvent): LogLine {
    const time = Date.parse(event.timestamp) || 0;
    if (event.type === "user.message" && !event.agentId) this.prompt = time;
    const cwd = event.type === "session.start" ? event.data?.context?.cwd : null;
    if (typeof cwd === "string") this.folder = cwd;
    let found: About;
    try {
      found = this.about(event, event.data ?? {}, time);
    } catch {
      // A damaged event of a log.
      found = { about: "" };
    }
    const agent = event.agentId ? `[${event.agentId.slice(0, 8)}] ` : "";
    return {
      key: event.id, time, sincePrompt: this.prompt === null ? null : time - this.prompt, topic: topicOf(event.type, found.bad === true),
      mark: event.ephemeral ? "◌" : "●", markText: event.ephemeral ? "not stored" : "stored", name: event.type,
      about: `${agent}${withoutFolder(oneLine(found.about), this.folder)}`, outcome: found.outcome ?? "", bad: found.bad === true, body: event, event, message: null,
    };
  }

  private about(event: WireEvent, data: any, time: number): About {
    const lane = event.agentId ?? "";
    switch (event.type) {
      case "assistant.turn_start":
        this.turns.set(lane, time);
        return { about: "the model is called" };
      case "assistant.turn_end":
        return { about: "end of the turn", outcome: since(this.turns.get(lane), time) };
      case "assistant.message": {
        const calls: any[] = data.toolRequests ?? [];
        const asked = calls.map((call) => `${call.name} ${toolText(call.arguments, null)}`.trim()).join("; ");
        return { about: [data.content, asked && `calls ${asked}`].filter(Boolean).join(" · ") || "an empty answer", outcome: [data.model, since(this.turns.get(lane), time)].filter(Boolean).join(" · ") };
      }
      case "assistant.usage":
        return { about: `${data.model}: ${tokens(data.inputTokens ?? 0)} tokens in${data.cacheReadTokens ? ` (${tokens(data.cacheReadTokens)} from the cache)` : ""}, ${tokens(data.outputTokens ?? 0)} out`, outcome: [typeof data.costUsd === "number" ? dollars(data.costUsd) : "", duration(data.duration ?? 0)].filter(Boolean).join(" · ") };
      case "model.call_failure":
        return { about: data.errorMessage ?? data.errorType ?? "", outcome: [data.statusCode ? `HTTP ${data.statusCode}` : "", data.durationMs !== undefined ? duration(data.durationMs) : ""].filter(Boolean).join(" · "), bad: true };
      case "tool.execution_start": {
        const begun = { tool: String(data.toolName), text: toolText(data.arguments, null), time, waitedMs: 0 };
        this.calls.set(callKey(lane, data), begun);
        return { about: `${begun.tool} ${begun.text}` };
      }
      case "tool.execution_complete": {
        const begun = this.calls.get(callKey(lane, data));
        const { exitCode } = callOutput(begun?.tool ?? "", data);
        const how = data.success ? (exitCode === null ? "done" : `exit ${exitCode}`) : data.error?.code ?? "failed";
        return { about: begun ? `${begun.tool} ${begun.text}` : String(data.toolCallId ?? ""), outcome: [how, since(begun && begun.time + begun.waitedMs, time)].filter(Boolean).join(" · "), bad: !data.success || Boolean(exitCode) };
      }
      case "tool.execution_partial_result":
      case "tool.execution_progress":
        return { about: `${this.calls.get(callKey(lane, data))?.tool ?? "tool"}: ${data.partialOutput ?? data.progressMessage ?? ""}` };
      case "permission.requested": {
        const text = describeRequest(data.permissionRequest ?? {});
        this.requests.set(data.requestId, { text, time, callId: data.permissionRequest?.toolCallId });
        return { about: `asks: ${text}` };
      }
      case "permission.completed": {
        const by = decidedBy(data.result, data.decidedBy);
        const asked = this.requests.get(data.requestId);
        const begun = asked && this.calls.get(callKey(lane, { toolCallId: asked.callId }));
        if (begun) begun.waitedMs += Math.max(0, time - Math.max(asked.time, begun.time));
        return { about: `${by.allowed ? "approved" : "denied"} by ${by.text}: ${asked?.text ?? "a call"}`, outcome: [ruleOf(data.result), asked ? `after ${duration(time - asked.time)}` : ""].filter(Boolean).join(" · "), bad: !by.allowed };
      }
      case "user_input.requested": case "elicitation.requested": case "exit_plan_mode.requested": case "auto_mode_switch.requested": {
        const text = String(data.question ?? data.message ?? data.summary ?? data.errorCode ?? "");
        this.requests.set(data.requestId, { text, time });
        return { about: `asks: ${text}` };
      }
      case "user_input.completed": case "elicitation.completed": case "exit_plan_mode.completed": case "auto_mode_switch.completed": {
        const asked = this.requests.get(data.requestId);
        const answer = data.answer ?? data.action ?? (data.approved === undefined ? "answered" : data.approved ? "approved" : "not approved");
        return { about: `${answer}: ${asked?.text ?? ""}`, outcome: asked ? `after ${duration(time - asked.time)}` : "" };
      }
      case "subagent.started": return { about: `${data.agentDisplayName ?? data.agentName ?? ""} ${data.agentDescription ?? ""}` };
      case "subagent.completed": case "subagent.failed":
        return { about: data.agentDisplayName ?? data.agentName ?? "", outcome: [data.totalToolCalls !== undefined ? `${data.totalToolCalls} calls` : "", data.totalTokens ? `${tokens(data.totalTokens)} tokens` : "", data.error ?? ""].filter(Boolean).join(" · "), bad: event.type === "subagent.failed" };
      case "session.idle": return { about: "the agent has ended its work" };
      case "session.error": return { about: data.message ?? "", bad: true };
      case "session.usage_info": return { about: `context ${tokens(data.currentTokens ?? 0)} of ${tokens(data.tokenLimit ?? 0)} tokens` };
      case "session.compaction_complete": return { about: data.success ? "the conversation so far was summarized" : data.error ?? "", outcome: data.tokensRemoved ? `${tokens(data.tokensRemoved)} tokens fewer` : "", bad: data.success === false };
      case "external_tool.requested": {
        const text = `${data.toolName} ${toolText(data.arguments, null)}`;
        this.requests.set(data.requestId, { text, time });
        return { about: `a client runs ${text}` };
      }
      case "external_tool.completed": {
        const asked = this.requests.get(data.requestId);
        return { about: `a client has run ${asked?.text ?? "a tool"}`, outcome: since(asked?.time, time) };
      }
      default: return { about: anything(event.type, data) };
    }
  }
}

interface About {
  about: string;
  outcome?: string;
  bad?: boolean;
}

function callKey(lane: string, data: any): string {
  return `${lane} ${data.toolCallId}`;
}

function since(start: number | undefined, time: number): string {
  return start === undefined ? "" : duration(Math.max(0, time - start));
}

function oneLine(text: unknown): string {
  return String(text ?? "").slice(0, 4 * LONGEST_TEXT).replace(/\s+/g, " ").trim().slice(0, LONGEST_TEXT);
}

/** Return what says most about any event: a text that is known to, else its type ("tools updated") and its members without ids. */
function anything(type: string, data: any): string {
  const known = data.content ?? data.deltaContent ?? data.message ?? data.title ?? data.newModel ?? data.newMode ?? data.mode ?? data.name ?? data.inputDelta ?? data.context?.cwd;
  if (typeof known === "string" && known) return known;
  const members = Object.entries(data).filter(([name, value]) => typeof value !== "object" && value !== "" && !/id$/i.test(name)).map(([name, value]) => `${name} ${value}`);
  return [type.slice(type.indexOf(".") + 1).replace(/[._]/g, " "), members.join(", ")].filter(Boolean).join(": ");
}

function topicOf(type: string, bad: boolean): Topic {
  if (/^(permission|user_input|elicitation|exit_plan_mode|auto_mode_switch)\./.test(type)) return "ask";
  if (bad || /error|failure|warning|abort/.test(type)) return "error";
  if (type.startsWith("assistant.") || type.startsWith("model.")) return "model";
  return /^(tool|external_tool|subagent|skill)\./.test(type) ? "tool" : "session";
}

/** Return what a decision approves beyond its call, or the rule that made it, in words. */
export function ruleOf(result: any): string {
  const rules: any[] = Array.isArray(result?.rules) ? result.rules : [];
  const parts = rules.map((rule) => [rule.kind, rule.argument].filter(Boolean).join(" ")).filter(Boolean);
  const approval = result?.approval;
  if (approval && typeof approval === "object") {
    const covered = approval.commandIdentifiers ?? approval.toolName ?? approval.path ?? approval.domain ?? approval.fact ?? "";
    parts.push([approval.kind, Array.isArray(covered) ? covered.join(", ") : covered].filter(Boolean).join(": "));
  }
  for (const one of [result?.path, result?.reason, result?.message]) if (typeof one === "string" && one) parts.push(one);
  return parts.length > 0 ? `rule: ${parts.join("; ")}` : "";
}

/** Return a line for each message of the page's own connection. */
export function messageLines(messages: readonly Message[]): LogLine[] {
  const asked = new Map<string, Message>();
  const reader = new Reader();
  return messages.map((message) => {
    const key = `${message.kind === "request" ? message.sent : !message.sent} ${message.id}`;
    if (message.kind === "request") asked.set(key, message);
    const request = message.kind === "request" ? undefined : asked.get(key);
    const event = message.method === "session.event" ? message.body.params.event as WireEvent : null;
    const inner = event ? reader.line(event) : null;
    const failed = message.kind === "error";
    const about = inner ? `${event!.type} ${inner.about}` : failed ? message.body.error.message : briefly(message.kind === "response" ? message.body.result : message.body.params);
    return {
      key: `message ${message.number}`, time: message.time, sincePrompt: null, topic: failed ? "error" : inner?.topic ?? "session",
      mark: message.sent ? "→" : "←", markText: message.sent ? "sent by the page" : "received",
      name: [message.method, message.kind === "response" ? "result" : failed ? "error" : ""].filter(Boolean).join(" "), about: oneLine(about),
      outcome: [`${grouped(message.bytes)} bytes`, request ? duration(message.time - request.time) : "", message.id !== null && message.kind !== "notification" ? `#${message.id}` : ""].filter(Boolean).join(" · "),
      bad: failed, body: message.body, event, message,
    };
  });
}

/** Return the members of a request or result in one line: lists as their length, deeper ones left out. */
function briefly(value: unknown): string {
  if (!value || typeof value !== "object") return value === undefined || value === null ? "" : String(value);
  return Object.entries(value).map(([name, one]) => `${name} ${Array.isArray(one) ? `[${one.length}]` : one && typeof one === "object" ? "{…}" : String(one).slice(0, 80)}`).join(", ");
}

/** Who has decided about a call: a decision, or nobody, because no question was needed. */
export interface Verdict {
  key: string;
  time: number;
  what: string;
  allowed: boolean;
  asked: boolean;
  by: string;
  rule: string;
  feedback: string;
  afterMs: number | null;
  callKey: string | null;
  /** The name of the sub-agent that asked; empty for the session's own. */
  agent: string;
}

/** Return who decided what, in the order of time, with the calls that ran without a question. */
export function verdictsOf(state: SessionState, calls: readonly CallRow[]): Verdict[] {
  const results = new Map(state.events.filter((event) => event.type === "permission.completed").map((event) => [event.data?.requestId, event.data?.result]));
  const asked = new Set(state.decisions.map((decision) => decision.callId));
  const text = (call: CallRow): string => `${call.tool} ${toolText(call.args, call.intention)}`.trim().split("\n", 1)[0]!;
  const known = new Map(calls.map((call) => [call.key, call]));
  // A rule decides without a question, whose words would be known.
  const what = (decision: Decision): string => {
    const call = decision.what === "a call" && decision.callId !== null ? known.get(decision.callId) : undefined;
    return call ? text(call) : decision.what;
  };
  const decided = state.decisions.map((decision: Decision): Verdict => ({
    key: decision.requestId, time: decision.time, what: what(decision), allowed: decision.allowed, asked: true, by: decision.by,
    rule: ruleOf(results.get(decision.requestId)), feedback: decision.feedback ?? "", afterMs: decision.time - decision.asked, callKey: decision.callId,
    agent: state.agents[decision.agentId ?? ""]?.name ?? "",
  }));
  const inAgent = new Map(Object.values(state.agents).flatMap((agent) => agent.rows.map((row) => [row.key, agent.name] as const)));
  const unasked = calls.filter((call) => call.start !== null && !asked.has(call.key)).map((call): Verdict => ({
    key: `call ${call.key}`, time: call.start!, what: text(call), allowed: call.status !== "denied", asked: false,
    ...unaskedBy(call.unasked), feedback: "", afterMs: null, callKey: call.key, agent: inAgent.get(call.key) ?? "",
  }));
  return [...decided, ...unasked].sort((one, other) => one.time - other.time);
}

/** Return verdicts as comma-separated values. No cell is a formula for a spreadsheet. */
export function asCsv(verdicts: readonly Verdict[]): string {
  const cell = (value: string): string => `"${(/^[=+\-@\t\r]/.test(value) ? `'${value}` : value).replaceAll('"', '""')}"`;
  const rows = verdicts.map((one) => [
    new Date(one.time).toISOString(), one.asked ? (one.allowed ? "approved" : "denied") : one.allowed ? "not asked" : "denied", one.what, one.by, one.rule, one.feedback, one.afterMs === null ? "" : String(one.afterMs),
  ]);
  return [["time", "decision", "what", "by", "rule", "feedback", "after_ms"], ...rows].map((row) => `${row.map(cell).join(",")}\r\n`).join("");
}

/** Return lines as JSON lines: what is on the wire, without the words of the log. */
export function linesAsJson(lines: readonly LogLine[]): string {
  return lines.map((line) => `${JSON.stringify(line.body)}\n`).join("");
}
