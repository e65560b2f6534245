// Build the state of a session from its events. Pure: the given state stays as it is, and unchanged parts are shared.

import type { ModelCallUsage } from "../generated/wire.ts";
import { callOutput } from "./calls.ts";
import { grouped } from "./format.ts";
import { describeRequest, decidedBy } from "./permissions.ts";
import { splitPrompt } from "./prompts.ts";
import type {
  Agent, CallRow, Decision, KnownCall, Question, Row, Run, SessionState, Span, WireEvent,
} from "./types.ts";


/** The longest time between the end of a model call and its answer in the log. */
const NEAR_MS = 1000;
/** The number of rows and spans among which those of the running turn are, so that long sessions are read in linear time. */
const RECENT = 1000;
/** The error message of a cancelled call in the protocol. */
const INTERRUPTED = "The execution of this tool, or a previous tool was interrupted.";

/** Return the state after further events. Events of unknown types only count as events. */
export function reduce(state: SessionState, events: readonly WireEvent[]): SessionState {
  const draft = new Draft(state);
  for (const event of events) draft.apply(event);
  return draft.next;
}

/** Return the state with the usage of its model calls, which the log does not have. */
export function withCalls(state: SessionState, calls: readonly ModelCallUsage[]): SessionState {
  if (calls.length < state.usage.length || calls.length === 0) return state;
  const runOf = (time: number): number => Math.max(0, state.runs.findLastIndex((run) => run.start <= time));
  const usage = calls.map((call) => ({
    time: Date.parse(call.time) || 0, model: call.model, input: call.inputTokens, output: call.outputTokens, cacheRead: call.cacheReadTokens,
    cacheWrite: call.cacheWriteTokens, reasoning: call.reasoningTokens ?? 0, costUsd: call.costUsd ?? null, durationMs: call.durationMs,
    firstMs: call.firstTokenMs ?? null, finish: call.finishReason ?? null, agentId: call.agentId ?? null, run: runOf(Date.parse(call.time) || 0),
  }));
  // A call belongs to the answer of its agent that follows at once.
  const answers = new Map<string | null, { calls: typeof usage; at: number }>();
  usage.forEach((call, at) => {
    if (calls[at]!.purpose !== "turn") return;
    const known = answers.get(call.agentId);
    if (known) known.calls.push(call);
    else answers.set(call.agentId, { calls: [call], at: 0 });
  });
  const spans = state.spans.map((span) => {
    const lane = answers.get(span.agentId);
    if (span.kind !== "model" || span.end === null || !lane) return span;
    while (lane.at < lane.calls.length && lane.calls[lane.at]!.time < span.start) lane.at += 1;
    const call = lane.calls[lane.at];
    if (!call || call.time > span.end + NEAR_MS) return span;
    lane.at += 1;
    return { ...span, start: Math.max(span.start, Math.min(span.end, call.time) - call.durationMs), firstMs: call.firstMs, tokens: { input: call.input, output: call.output } };
  });
  const context = calls.filter((call) => call.contextWindow && call.purpose === "turn" && !call.agentId).map((call) => ({
    time: Date.parse(call.time) || 0, tokens: call.inputTokens + call.outputTokens, limit: call.contextWindow!,
  }));
  return { ...state, usage, spans, context: context.length >= state.context.length ? context : state.context };
}

/** Return the state of a session that nobody runs: open calls and runs are unfinished. */
export function settle(state: SessionState): SessionState {
  const draft = new Draft(state);
  draft.settle();
  return draft.next;
}

class Draft {
  next: SessionState;
  private readonly copied = new Set<unknown>();

  constructor(state: SessionState) {
    this.next = { ...state };
  }

  apply(event: WireEvent): void {
    this.list("events").push(event);
    const time = Date.parse(event.timestamp) || this.next.changed;
    this.next.changed = Math.max(this.next.changed, time);
    const data = event.data ?? {};
    const handle = HANDLERS[event.type];
    // A damaged event of a log must not keep the others from being shown.
    if (handle) {
      try {
        handle(this, data, event, time);
      } catch (error) {
        console.warn(`cannot show an event of the type ${event.type}`, error);
      }
    }
  }

  settle(): void {
    const run = this.run;
    if (run && run.end === null) this.endRun(this.lastActivity(run), false);
    const mark = (row: Row): Row =>
      row.kind === "call" && (row.status === "running" || row.status === "waiting" || row.status === "writing")
        ? { ...row, status: "unfinished" }
        : "streaming" in row && row.streaming ? { ...row, streaming: false } : row;
    this.next.rows = this.next.rows.map(mark);
    this.next.agents = Object.fromEntries(
      Object.entries(this.next.agents).map(([id, agent]) => [id, { ...agent, rows: agent.rows.map(mark) }]),
    );
    this.next.spans = this.next.spans.map((span) => (span.end === null ? { ...span, end: this.next.changed, ok: false } : span));
    this.next.questions = [];
    this.next.working = false;
  }

  /** Return a list of the state that may be changed. */
  list<K extends "events" | "rows" | "decisions" | "spans" | "usage" | "context" | "runs" | "questions">(name: K): SessionState[K] {
    if (!this.copied.has(name)) {
      this.copied.add(name);
      this.next[name] = [...this.next[name]] as SessionState[K];
    }
    return this.next[name];
  }

  rowsOf(agentId: string | null | undefined): Row[] {
    const agent = agentId ? this.next.agents[agentId] : undefined;
    if (!agent) return this.list("rows");
    const key = `agent ${agent.id}`;
    if (!this.copied.has(key)) {
      this.copied.add(key);
      this.changeAgent(agent.id, { rows: [...agent.rows] });
    }
    return this.next.agents[agent.id]!.rows;
  }

  changeAgent(id: string, change: Partial<Agent>): void {
    const agent = this.next.agents[id];
    if (agent) this.next.agents = { ...this.next.agents, [id]: { ...agent, ...change } };
  }

  /** Change the last row with a key; returns whether there is one. */
  change(rows: Row[], key: string, change: (row: Row) => Row, most = Infinity): boolean {
    for (let at = rows.length - 1; at >= Math.max(0, rows.length - most); at--) {
      const row = rows[at]!;
      if (row.key === key) {
        rows[at] = change(row);
        return true;
      }
    }
    return false;
  }

  /** Change the call that an event is about; returns the key of its row, or null if there is none. */
  changeCall(callId: string, agentId: string | null | undefined, change: (row: CallRow) => CallRow): string | null {
    const known = this.callOf(callId, agentId);
    if (known) this.changeRow(known, change);
    return known?.key ?? null;
  }

  /** The call that an event is about: one that has begun rather than a new one, and that rather than an ended one. */
  callOf(callId: string | null | undefined, agentId: string | null | undefined): KnownCall | undefined {
    const all = callId ? this.next.calls.get(callId) ?? [] : [];
    // The agent of an event and that of its call may differ: questions about calls do not name it.
    const own = all.filter((call) => call.agentId === (agentId ?? null));
    const find = (status: KnownCall["status"]): KnownCall | undefined =>
      own.find((call) => call.status === status) ?? all.find((call) => call.status === status);
    return find("begun") ?? find("new") ?? own[own.length - 1] ?? all[all.length - 1];
  }

  /** Change a new call of an agent that fits, or add a row for it: a call with the id of an earlier one hides nothing. */
  beginCall(callId: string, tool: string, event: WireEvent, time: number, about: Partial<KnownCall>, fits: (call: KnownCall) => boolean, change: (row: CallRow) => CallRow): string {
    const all = this.next.calls.get(callId) ?? [];
    const known = all.find((call) => call.agentId === (event.agentId ?? null) && call.status === "new" && fits(call));
    const call = { key: all.length > 0 ? `${callId} (${all.length + 1})` : callId, agentId: event.agentId ?? null, eventId: null, status: "new" as const, ...known, ...about };
    // An answer with the id of a call that never ended is another call.
    const earlier = all.map((one) => (about.eventId && one.agentId === call.agentId && one.status === "begun" && one.eventId !== about.eventId ? { ...one, status: "ended" as const } : one));
    this.setCalls(callId, known ? earlier.map((one) => (one === known ? call : one)) : [...earlier, call]);
    if (!known) this.addCall(call.key, tool, event, time);
    this.changeRow(call, change);
    return call.key;
  }

  endCall(callId: string, agentId: string | null | undefined): void {
    const known = this.callOf(callId, agentId);
    if (known) this.setCalls(callId, this.next.calls.get(callId)!.map((one) => (one === known ? { ...one, status: "ended" } : one)));
  }

  private setCalls(callId: string, calls: readonly KnownCall[]): void {
    if (!this.copied.has("calls")) {
      this.copied.add("calls");
      this.next.calls = new Map(this.next.calls);
    }
    (this.next.calls as Map<string, readonly KnownCall[]>).set(callId, calls);
  }

  private changeRow(call: KnownCall, change: (row: CallRow) => CallRow): void {
    this.change(this.rowsOf(call.agentId), call.key, (row) => (row.kind === "call" ? change(row) : row));
  }

  private addCall(key: string, tool: string, event: WireEvent, time: number): void {
    this.rowsOf(event.agentId).push({
      kind: "call", key, eventId: event.id, time, start: null, end: null, tool, server: null, intention: null,
      args: undefined, argsText: "", status: "writing", output: "", diff: "", pictures: [], exitCode: null, sandboxed: null, edited: false, unasked: null,
      decisions: [], agentId: null,
    });
  }

  note(level: "info" | "warning" | "error", text: string, event: WireEvent, time: number): void {
    this.rowsOf(event.agentId).push({ kind: "note", key: event.id, eventId: event.id, time, level, text });
  }

  get run(): Run | undefined {
    return this.next.runs[this.next.runs.length - 1];
  }

  addSpan(span: Omit<Span, "run" | "firstMs" | "ok"> & Partial<Span>): void {
    this.list("spans").push({ run: Math.max(0, this.next.runs.length - 1), firstMs: null, ok: true, ...span });
  }

  changeSpan(key: string, change: Partial<Span>): boolean {
    const spans = this.list("spans");
    for (let at = spans.length - 1; at >= Math.max(0, spans.length - RECENT); at--) {
      if (spans[at]!.key === key) {
        spans[at] = { ...spans[at]!, ...change };
        return true;
      }
    }
    return false;
  }

  changeRun(change: Partial<Run>): void {
    const runs = this.list("runs");
    const last = runs.length - 1;
    if (last >= 0) runs[last] = { ...runs[last]!, ...change };
  }

  /** The time of the last thing that has happened in a run. */
  private lastActivity(run: Run): number {
    const last = this.next.rows.findLast((row) => row.kind !== "note");
    const ends = this.next.spans.filter((span) => span.run === run.index).map((span) => span.end ?? span.start);
    return Math.max(run.start, last?.time ?? 0, ...ends);
  }

  beginRun(prompt: string, interactionId: string, time: number): void {
    const run = this.run;
    if (run && run.end === null) this.endRun(time, true);
    this.list("runs").push({ index: this.next.runs.length, interactionId, prompt, start: time, end: null, stop: null, ok: true, ended: false });
  }

  endRun(time: number, ended: boolean): void {
    const run = this.run;
    if (!run || run.end !== null) return;
    const found = stopOf(this.next, run);
    this.changeRun({ end: time, ended, stop: run.stop ?? found.stop, ok: run.stop === null ? found.ok : run.ok });
  }

  ask(question: Question): void {
    if (!this.next.questions.some((open) => open.id === question.id)) this.list("questions").push(question);
  }

  unask(id: string): Question | undefined {
    const found = this.next.questions.find((open) => open.id === id);
    this.next.questions = this.next.questions.filter((open) => open.id !== id);
    this.copied.add("questions");
    return found;
  }
}

/** Return why a run has ended that no event explains: from what came last in it. */
function stopOf(state: SessionState, run: Run): { stop: string; ok: boolean } {
  for (let at = state.rows.length - 1; at >= 0; at--) {
    const row = state.rows[at]!;
    if (row.time < run.start) break;
    if (row.kind === "answer") {
      return row.interrupted ? { stop: "Stopped by a person", ok: false } : { stop: "Finished", ok: true };
    }
    if (row.kind === "call") {
      if (row.status === "denied") {
        const decision = row.decisions.findLast((one) => !one.allowed);
        return { stop: `Ended: ${row.tool} was denied${decision ? ` by ${decision.by}` : ""}`, ok: false };
      }
      if (row.status === "done" || row.status === "failed") return { stop: `Ended after ${row.tool}`, ok: row.status === "done" };
      return { stop: "Unfinished: the server ended during a call", ok: false };
    }
  }
  return { stop: "Unfinished: no answer of the model is stored", ok: false };
}

type Handler = (draft: Draft, data: any, event: WireEvent, time: number) => void;

const HANDLERS: Record<string, Handler> = {
  "session.start": (draft, data, _event, time) => {
    draft.next.started = Date.parse(data.startTime) || time;
    draft.next.model = data.selectedModel ?? draft.next.model;
    setContext(draft, data.context);
  },
  "session.resume": (draft, data, event, time) => {
    draft.next.model = data.selectedModel ?? draft.next.model;
    setContext(draft, data.context);
    if (draft.next.rows.length > 0) draft.note("info", "Resumed", event, time);
  },
  "session.context_changed": (draft, data) => setContext(draft, data),
  "session.title_changed": (draft, data) => { draft.next.title = String(data.title ?? ""); },
  "session.model_change": (draft, data, event, time) => {
    draft.next.model = data.newModel;
    draft.note("info", `Model: ${data.newModel}`, event, time);
  },
  "session.mode_changed": (draft, data, event, time) => {
    draft.next.mode = data.newMode;
    draft.note("info", `Mode: ${data.newMode}`, event, time);
  },
  "session.permissions_changed": (draft, data, event, time) => draft.note("info", `Permissions: ${data.mode}`, event, time),
  "session.todos_changed": (draft) => { draft.next.todosVersion += 1; },
  "session.plan_changed": (draft) => { draft.next.todosVersion += 1; },
  "pending_messages.modified": (draft) => { draft.next.queueVersion += 1; },
  "session.info": (draft, data, event, time) => draft.note("info", data.message, event, time),
  "session.warning": (draft, data, event, time) => draft.note("warning", data.message, event, time),
  "session.error": (draft, data, event, time) => {
    const reason = String(data.message ?? "").replace(/^Execution failed: /, "");
    draft.note("error", reason, event, time);
    draft.changeRun({ stop: `Failed: ${reason}`, ok: false });
  },
  "abort": (draft, _data, event, time) => {
    draft.note("warning", "Stopped by a person", event, time);
    draft.changeRun({ stop: "Stopped by a person", ok: false });
    // The log has no other end of an aborted run.
    draft.endRun(time, true);
  },
  "session.idle": (draft, data, _event, time) => {
    draft.next.working = false;
    draft.next.mode = data.mode ?? draft.next.mode;
    draft.endRun(time, true);
  },
  "session.task_complete": (draft, data, event, time) => {
    draft.note("info", `Task complete${data.summary ? `: ${data.summary}` : ""}`, event, time);
    draft.changeRun({ stop: `Finished: ${data.summary ?? "the model called task_complete"}` });
  },
  "session.shutdown": (draft, data, _event, time) => {
    draft.next.metrics = data.modelMetrics ?? {};
    draft.endRun(time, true);
    draft.next.working = false;
  },
  "session.snapshot_rewind": () => undefined,
  "session.changes_undone": (draft, data, event, time) => {
    draft.next.changesVersion += 1;
    const undone: string[] = data.undone ?? [];
    if (undone.length > 0) draft.note("info", `Undone: the changes of ${undone.join(", ")}`, event, time);
  },
  "session.usage_info": (draft, data, event, time) => {
    if (data.tokenLimit && !event.agentId) draft.list("context").push({ time, tokens: data.currentTokens, limit: data.tokenLimit });
  },
  "session.compaction_start": (draft, _data, event, time) => {
    draft.addSpan({ kind: "summary", key: "summary", label: "summary of the conversation", start: time, end: null, agentId: event.agentId ?? null, rowKey: event.id });
  },
  "session.compaction_complete": (draft, data, event, time) => {
    draft.changeSpan("summary", { end: time, ok: data.success === true, key: event.id });
    const removed = data.tokensRemoved ? `, ${grouped(data.tokensRemoved)} tokens fewer` : "";
    if (data.success) draft.note("info", `The conversation so far was summarized${removed}`, event, time);
    else draft.note("warning", `The conversation could not be summarized: ${data.error ?? "no reason given"}`, event, time);
  },

  "user.message": (draft, data, event, time) => {
    const source = data.source ?? null;
    const { text, commands } = splitPrompt(String(data.content ?? ""));
    if (!event.agentId && (source === null || source === "user") && data.delivery !== "steering") {
      draft.beginRun(text, data.interactionId ?? "", time);
    }
    if (!event.agentId) draft.next.working = true;
    draft.rowsOf(event.agentId).push({
      kind: "prompt", key: event.id, eventId: event.id, time, text, commands, source,
      delivery: data.delivery ?? null, attachments: (data.attachments ?? []).map(attachmentOf),
    });
    if (!draft.next.title && !event.agentId) draft.next.title = text.replace(/\s+/g, " ").slice(0, 100);
  },
  "system.notification": (draft, data, event, time) => {
    const name = data.kind?.displayName ?? data.kind?.type ?? "";
    draft.note("info", `The model was told: ${name ? `${name}: ` : ""}${String(data.content ?? "").slice(0, 400)}`, event, time);
  },

  "assistant.turn_start": (draft, data, event, time) => {
    if (!event.agentId) draft.next.working = true;
    draft.addSpan({ kind: "model", key: modelKey(event), label: draft.next.model ?? "model", start: time, end: null, agentId: event.agentId ?? null, rowKey: null });
    void data;
  },
  "assistant.turn_end": (draft, _data, event, time) => {
    // Without an answer, the call has failed or was cancelled.
    draft.changeSpan(modelKey(event), { end: time, ok: false, key: `model ${event.id}` });
  },
  "assistant.reasoning_delta": (draft, data, event, time) => {
    append(draft, event, "thought", data.reasoningId, data.deltaContent, time);
  },
  "assistant.reasoning": (draft, data, event, time) => {
    const rows = draft.rowsOf(event.agentId);
    const done = (row: Row): Row => ({ ...row, eventId: event.id, text: data.content, streaming: false } as Row);
    if (!draft.change(rows, data.reasoningId, done, RECENT) && String(data.content ?? "").trim()) {
      rows.push({ kind: "thought", key: data.reasoningId, eventId: event.id, time, text: data.content, streaming: false });
    }
  },
  "assistant.message_delta": (draft, data, event, time) => {
    append(draft, event, "answer", data.messageId, data.deltaContent, time);
  },
  "assistant.tool_call_delta": (draft, data, event, time) => {
    const grow = (row: CallRow): CallRow => ({ ...row, argsText: row.argsText + data.inputDelta });
    draft.beginCall(data.toolCallId, data.toolName ?? "tool", event, time, {}, (call) => call.eventId === null, grow);
  },
  "assistant.message": (draft, data, event, time) => {
    const rows = draft.rowsOf(event.agentId);
    const text = String(data.content ?? "");
    const done = (row: Row): Row => ({
      ...row, eventId: event.id, text, streaming: false, model: data.model ?? null, interrupted: data.interrupted === true,
    } as Row);
    if (!draft.change(rows, data.messageId, done, RECENT) && text.trim()) {
      rows.push({
        kind: "answer", key: data.messageId, eventId: event.id, time, text, streaming: false,
        interrupted: data.interrupted === true, model: data.model ?? null,
      });
    }
    draft.changeSpan(modelKey(event), { end: time, key: `model ${event.id}`, label: data.model ?? draft.next.model ?? "model", rowKey: data.messageId });
    for (const request of data.toolRequests ?? []) {
      const about = { tool: request.name, args: request.arguments, intention: request.intentionSummary ?? null, server: request.mcpServerName ?? null, eventId: event.id };
      const complete = (row: CallRow): CallRow => ({ ...row, ...about, argsText: "" });
      draft.beginCall(request.toolCallId, request.name, event, time, { eventId: event.id }, (call) => call.eventId === null, complete);
    }
  },
  "assistant.usage": (draft, data, event, time) => {
    draft.list("usage").push({
      time, model: data.model, input: data.inputTokens, output: data.outputTokens, cacheRead: data.cacheReadTokens ?? 0,
      cacheWrite: data.cacheWriteTokens ?? 0, reasoning: data.reasoningTokens ?? 0, costUsd: data.costUsd ?? null, durationMs: data.duration,
      firstMs: data.timeToFirstTokenMs ?? null, finish: data.finishReason ?? null, agentId: event.agentId ?? null,
      run: Math.max(0, draft.next.runs.length - 1),
    });
    const spans = draft.list("spans");
    for (let at = spans.length - 1; at >= 0; at--) {
      const span = spans[at]!;
      if (span.kind === "model" && span.agentId === (event.agentId ?? null)) {
        const end = span.end ?? time;
        spans[at] = { ...span, start: Math.max(span.start, end - data.duration), end, firstMs: data.timeToFirstTokenMs ?? null, tokens: { input: data.inputTokens, output: data.outputTokens } };
        break;
      }
    }
    if (data.finishReason === "length") draft.changeRun({ stop: "Ended: the answer reached the limit of tokens", ok: false });
    if (data.finishReason === "refusal") draft.changeRun({ stop: "Ended: the model refused", ok: false });
  },
  "model.call_failure": (draft, data, event, time) => {
    const what = [data.statusCode ? `HTTP ${data.statusCode}` : "", data.errorMessage ?? data.errorType ?? ""].filter(Boolean).join(": ");
    draft.note("warning", `A model call failed${what ? ` (${what})` : ""}`, event, time);
  },

  "tool.execution_start": (draft, data, event, time) => {
    const begin = (row: CallRow): CallRow => ({
      ...row, start: time, status: row.status === "waiting" ? "waiting" : "running", args: data.arguments ?? row.args, tool: data.toolName,
      server: data.mcpServerName ?? row.server, argsText: "",
    });
    const key = draft.beginCall(data.toolCallId, data.toolName, event, time, { status: "begun" }, () => true, begin);
    draft.addSpan({ kind: "tool", key, label: data.toolName, start: time, end: null, agentId: event.agentId ?? null, rowKey: key });
  },
  "tool.execution_partial_result": (draft, data, event) => {
    draft.changeCall(data.toolCallId, event.agentId, (row) => ({ ...row, output: data.partialOutput }));
  },
  "tool.execution_progress": (draft, data, event) => {
    draft.changeCall(data.toolCallId, event.agentId, (row) => ({ ...row, output: data.progressMessage }));
  },
  "tool.execution_complete": (draft, data, event, time) => {
    const finish = (row: CallRow): CallRow => {
      const result = callOutput(row.tool, data);
      return {
        ...row, ...result, end: time, args: data.effectiveArguments ?? row.args, sandboxed: data.sandboxed ?? row.sandboxed,
        unasked: data.jumpseatDecision ? { by: String(data.jumpseatDecision.by), reason: String(data.jumpseatDecision.reason ?? "") } : row.unasked,
        edited: data.effectiveArguments != null && JSON.stringify(data.effectiveArguments) !== JSON.stringify(row.args ?? {}),
        status: data.success ? (result.exitCode ? "failed" : "done") : failure(data.error),
      };
    };
    const key = draft.changeCall(data.toolCallId, event.agentId, finish);
    if (key !== null) draft.changeSpan(key, { end: time, ok: data.success === true });
    draft.next.changesVersion += 1;
    draft.endCall(data.toolCallId, event.agentId);
  },

  "permission.requested": (draft, data, event, time) => {
    const request = data.permissionRequest ?? {};
    if (data.resolvedByHook) return;
    const call = draft.callOf(request.toolCallId, event.agentId);
    const agentId = event.agentId ?? call?.agentId ?? null;
    draft.ask({ kind: "permission", id: data.requestId, time, agentId, rowKey: call?.key ?? null, request, behind: data.callsBehind ?? 0 });
    if (call) draft.changeCall(request.toolCallId, event.agentId, (row) => ({ ...row, status: "waiting" }));
    draft.addSpan({ kind: "wait", key: `wait ${data.requestId}`, label: "waits for an approval", start: time, end: null, agentId, rowKey: call?.key ?? null });
  },
  "permission.completed": (draft, data, event, time) => {
    const question = draft.unask(data.requestId);
    const request = question?.kind === "permission" ? question.request : findRequest(draft.next.events, data.requestId);
    const callId = data.toolCallId ?? request?.toolCallId ?? null;
    const by = decidedBy(data.result, data.decidedBy);
    const call = draft.callOf(callId, event.agentId ?? question?.agentId);
    const decision: Decision = {
      requestId: data.requestId, callId: call?.key ?? callId, time, asked: question?.time ?? time, what: request ? describeRequest(request) : "a call",
      kind: data.result?.kind ?? "", allowed: by.allowed, by: by.text, feedback: data.result?.feedback ?? null, agentId: event.agentId ?? question?.agentId ?? call?.agentId ?? null,
    };
    draft.list("decisions").push(decision);
    if (callId) {
      draft.changeCall(callId, event.agentId ?? question?.agentId, (row) => ({
        ...row, decisions: [...row.decisions, decision], status: row.status === "waiting" ? "running" : row.status,
      }));
    }
    draft.changeSpan(`wait ${data.requestId}`, { end: time });
  },

  "user_input.requested": (draft, data, event, time) => {
    draft.ask({
      kind: "input", id: data.requestId, time, agentId: event.agentId ?? draft.callOf(data.toolCallId, null)?.agentId ?? null, question: data.question,
      choices: data.choices ?? [], free: data.allowFreeform !== false || !(data.choices ?? []).length,
    });
    waitFor(draft, data.requestId, "waits for an answer", event, time, data.toolCallId);
  },
  "user_input.completed": (draft, data, event, time) => answered(draft, data.requestId, event, time),
  "exit_plan_mode.requested": (draft, data, event, time) => {
    draft.ask({
      kind: "plan", id: data.requestId, time, agentId: event.agentId ?? null, summary: data.summary ?? "",
      plan: data.planContent ?? "", actions: data.actions ?? [], recommended: data.recommendedAction ?? "",
    });
    waitFor(draft, data.requestId, "waits for the approval of a plan", event, time);
  },
  "exit_plan_mode.completed": (draft, data, event, time) => {
    answered(draft, data.requestId, event, time);
    if (data.approved !== undefined && data.approved !== null) {
      draft.note("info", data.approved ? "The plan was approved" : `The plan was not approved${data.feedback ? `: ${data.feedback}` : ""}`, event, time);
    }
  },
  "elicitation.requested": (draft, data, event, time) => {
    draft.ask({
      kind: "form", id: data.requestId, time, agentId: event.agentId ?? null, message: data.message,
      schema: data.requestedSchema ?? {}, source: data.elicitationSource ?? null, url: data.mode === "url" ? data.url ?? null : null,
    });
    waitFor(draft, data.requestId, "waits for a form", event, time);
  },
  "elicitation.completed": (draft, data, event, time) => answered(draft, data.requestId, event, time),
  "auto_mode_switch.requested": (draft, data, event, time) => {
    draft.ask({ kind: "switch", id: data.requestId, time, agentId: event.agentId ?? null, code: data.errorCode ?? null, retryS: data.retryAfterSeconds ?? null });
    waitFor(draft, data.requestId, "waits for an answer", event, time);
  },
  "auto_mode_switch.completed": (draft, data, event, time) => answered(draft, data.requestId, event, time),

  "subagent.started": (draft, data, event, time) => {
    const id = event.agentId ?? data.toolCallId;
    const parent = data.parentId ?? null;
    draft.next.agents = {
      ...draft.next.agents,
      [id]: {
        id, callId: data.toolCallId, name: data.agentDisplayName, type: data.agentType ?? data.agentName, model: data.model ?? null,
        status: "running", error: null, parent, start: time, end: null, tokens: null, calls: null, rows: [],
      },
    };
    const rowKey = draft.changeCall(data.toolCallId, parent, (row) => ({ ...row, agentId: id }));
    draft.addSpan({ kind: "agent", key: `agent ${id}`, label: data.agentDisplayName, start: time, end: null, agentId: id, rowKey });
  },
  "subagent.configured": (draft, data, event) => {
    if (event.agentId && data.model) draft.changeAgent(event.agentId, { model: data.model });
  },
  "subagent.completed": (draft, data, event, time) => endAgent(draft, data, event, time, data.cancelled ? "cancelled" : "completed"),
  "subagent.failed": (draft, data, event, time) => endAgent(draft, data, event, time, "failed"),
  "skill.invoked": (draft, data, event, time) => draft.note("info", `Skill: ${data.name}`, event, time),
  "tool_search.activated": (draft, data, event, time) => draft.note("info", `Tools found: ${(data.toolNames ?? []).join(", ")}`, event, time),
};

function setContext(draft: Draft, context: any): void {
  if (!context) return;
  draft.next.folder = context.cwd ?? draft.next.folder;
  draft.next.branch = context.branch ?? null;
}

function modelKey(event: WireEvent): string {
  return `model of ${event.agentId ?? "main"}`;
}

function append(draft: Draft, event: WireEvent, kind: "answer" | "thought", key: string, text: string, time: number): void {
  const rows = draft.rowsOf(event.agentId);
  const more = (row: Row): Row => ("text" in row ? { ...row, text: row.text + text } : row);
  if (draft.change(rows, key, more, RECENT)) return;
  const common = { key, eventId: event.id, time, text, streaming: true };
  rows.push(kind === "answer" ? { kind, ...common, interrupted: false, model: null } : { kind, ...common });
}

function failure(error: any): CallRow["status"] {
  if (error?.message === INTERRUPTED) return "cancelled";
  return error?.code === "denied" || error?.code === "rejected" ? "denied" : "failed";
}

function waitFor(draft: Draft, id: string, label: string, event: WireEvent, time: number, callId?: string): void {
  draft.addSpan({ kind: "wait", key: `wait ${id}`, label, start: time, end: null, agentId: event.agentId ?? null, rowKey: draft.callOf(callId, event.agentId)?.key ?? null });
}

function answered(draft: Draft, id: string, _event: WireEvent, time: number): void {
  draft.unask(id);
  draft.changeSpan(`wait ${id}`, { end: time });
}

function endAgent(draft: Draft, data: any, event: WireEvent, time: number, status: Agent["status"]): void {
  const id = event.agentId ?? data.toolCallId;
  draft.changeAgent(id, { status, end: time, error: data.error ?? null, tokens: data.totalTokens ?? null, calls: data.totalToolCalls ?? null });
  draft.changeSpan(`agent ${id}`, { end: time, ok: status === "completed" });
}

function findRequest(events: readonly WireEvent[], requestId: string): any {
  for (let at = events.length - 1; at >= 0; at--) {
    const event = events[at]!;
    if (event.type === "permission.requested" && event.data?.requestId === requestId) return event.data.permissionRequest;
  }
  return undefined;
}

function attachmentOf(attachment: any): { name: string; picture?: string } {
  const name = attachment.displayName ?? attachment.name ?? attachment.path ?? attachment.type ?? "attachment";
  const mime = attachment.mimeType ?? attachment.mediaType;
  const data = attachment.data;
  return typeof data === "string" && /^image\/(png|jpeg|gif|webp)$/.test(mime ?? "")
    ? { name: String(name), picture: `data:${mime};base64,${data}` }
    : { name: String(name) };
}

