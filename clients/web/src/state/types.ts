// The state of one session as the page shows it, built from its events by reduce.ts.

import type { Events, PermissionCompletedData, PermissionRequestedData } from "../generated/wire.ts";

/** An event of a session with its envelope. Logs of other versions may hold further types. */
export interface WireEvent {
  id: string;
  timestamp: string;
  parentId?: string | null;
  type: string;
  // Each reader knows the shape of its type; unknown and damaged events are shown as JSON.
  data: any;
  agentId?: string | null;
  ephemeral?: boolean;
}

export type EventData<K extends keyof Events> = Events[K]["data"];
export type PermissionRequest = PermissionRequestedData["permissionRequest"];
export type PermissionResult = PermissionCompletedData["result"];

export type CallStatus = "writing" | "running" | "waiting" | "done" | "failed" | "denied" | "cancelled" | "unfinished";

export interface Attachment {
  name: string;
  /** A data URL of a picture, if the attachment is one. */
  picture?: string;
}

export interface PromptRow {
  kind: "prompt";
  key: string;
  eventId: string;
  time: number;
  text: string;
  /** The command lines of the user whose output the model got with the prompt. */
  commands: string[];
  attachments: Attachment[];
  /** Where a prompt comes from that no person wrote. */
  source: string | null;
  delivery: string | null;
}

export interface AnswerRow {
  kind: "answer";
  key: string;
  eventId: string;
  time: number;
  text: string;
  streaming: boolean;
  interrupted: boolean;
  model: string | null;
}

export interface ThoughtRow {
  kind: "thought";
  key: string;
  eventId: string;
  time: number;
  text: string;
  streaming: boolean;
}

export interface CallRow {
  kind: "call";
  key: string;
  eventId: string;
  time: number;
  /** In milliseconds since the epoch; null while the call has not begun or ended. */
  start: number | null;
  end: number | null;
  tool: string;
  server: string | null;
  intention: string | null;
  args: unknown;
  argsText: string;
  status: CallStatus;
  output: string;
  diff: string;
  pictures: string[];
  exitCode: number | null;
  sandboxed: boolean | null;
  /** The call ran with other arguments than those of the model. */
  edited: boolean;
  decisions: Decision[];
  /** Why the call ran, or did not, without a question; null if that is not in the log. */
  unasked: { by: string; reason: string } | null;
  /** The sub-agent that the call has started. */
  agentId: string | null;
}

export interface NoteRow {
  kind: "note";
  key: string;
  eventId: string;
  time: number;
  level: "info" | "warning" | "error";
  text: string;
}

/** A call of an agent, by the key of its row. `eventId` is the answer of the model that has it. */
export interface KnownCall {
  key: string;
  agentId: string | null;
  eventId: string | null;
  status: "new" | "begun" | "ended";
}

export type Row = PromptRow | AnswerRow | ThoughtRow | CallRow | NoteRow;

/** How a person, a rule or the lack of both has decided about a call. */
export interface Decision {
  requestId: string;
  callId: string | null;
  time: number;
  asked: number;
  what: string;
  kind: string;
  allowed: boolean;
  /** Who decided, and for how long: "a person, for this session". */
  by: string;
  feedback: string | null;
  agentId: string | null;
}

export interface Agent {
  id: string;
  callId: string;
  name: string;
  type: string;
  model: string | null;
  status: "running" | "completed" | "failed" | "cancelled";
  error: string | null;
  parent: string | null;
  start: number;
  end: number | null;
  tokens: number | null;
  calls: number | null;
  rows: Row[];
}

export type SpanKind = "model" | "tool" | "wait" | "agent" | "summary";

/** A part of the timeline; times are in milliseconds since the epoch. */
export interface Span {
  kind: SpanKind;
  key: string;
  label: string;
  start: number;
  /** Null while it goes on. */
  end: number | null;
  /** The time until the first token, in milliseconds. */
  firstMs: number | null;
  agentId: string | null;
  run: number;
  ok: boolean;
  rowKey: string | null;
  /** The tokens of a model call, where its usage is known. */
  tokens?: { input: number; output: number };
}

/** One model call, with its tokens. */
export interface Usage {
  time: number;
  model: string;
  input: number;
  output: number;
  cacheRead: number;
  cacheWrite: number;
  /** The tokens of reasoning among the output. */
  reasoning: number;
  costUsd: number | null;
  durationMs: number;
  firstMs: number | null;
  finish: string | null;
  agentId: string | null;
  run: number;
}

export interface ContextFill {
  time: number;
  tokens: number;
  limit: number;
}

/** A prompt with everything until its end. */
export interface Run {
  index: number;
  /** The id by which the server counts the run; empty in logs that have none. */
  interactionId: string;
  prompt: string;
  start: number;
  end: number | null;
  /** Why the run ended; null while it goes on. */
  stop: string | null;
  ok: boolean;
  /** The message of the session's own end of the run was seen: otherwise, the end is that of the log. */
  ended: boolean;
}

export type Question =
  | { kind: "permission"; id: string; time: number; agentId: string | null; rowKey: string | null; request: any; behind: number }
  | { kind: "input"; id: string; time: number; agentId: string | null; question: string; choices: string[]; free: boolean }
  | { kind: "plan"; id: string; time: number; agentId: string | null; summary: string; plan: string; actions: string[]; recommended: string }
  | { kind: "form"; id: string; time: number; agentId: string | null; message: string; schema: any; source: string | null; url: string | null }
  | { kind: "switch"; id: string; time: number; agentId: string | null; code: string | null; retryS: number | null };

export interface SessionState {
  id: string;
  title: string;
  folder: string;
  branch: string | null;
  model: string | null;
  mode: string;
  started: number;
  changed: number;
  working: boolean;
  rows: Row[];
  agents: Record<string, Agent>;
  /** The calls of each id that a model has given, in their order: models use ids again. */
  calls: ReadonlyMap<string, readonly KnownCall[]>;
  questions: Question[];
  decisions: Decision[];
  spans: Span[];
  usage: Usage[];
  context: ContextFill[];
  runs: Run[];
  /** Counts the changes of the todos, which are read separately. */
  todosVersion: number;
  queueVersion: number;
  /** Counts what may have changed files: calls that have ended, and changes that were undone. */
  changesVersion: number;
  events: WireEvent[];
  /** The usage of a session that was shut down, by model. */
  metrics: Record<string, any>;
}

export function emptySession(id: string): SessionState {
  return {
    id, title: "", folder: "", branch: null, model: null, mode: "interactive", started: 0, changed: 0, working: false,
    rows: [], agents: {}, calls: new Map(), questions: [], decisions: [], spans: [], usage: [], context: [], runs: [],
    todosVersion: 0, queueVersion: 0, changesVersion: 0, events: [], metrics: {},
  };
}
