// The questions that wait for the person, and what may follow them. Pure.

import { toolText } from "./calls.ts";
import { describeRequest } from "./permissions.ts";
import type { CallRow, Question, SessionState } from "./types.ts";

export interface Queue {
  /** The place of the shown question, from 1. */
  place: number;
  total: number;
  /** Not all of them are asked yet: an approval may cover those that follow. */
  isOpen: boolean;
  /** What waits behind the shown question. */
  next: { what: string; subject: string }[];
}

const KINDS: Record<Question["kind"], string> = { permission: "approval", input: "question", plan: "plan", form: "form", switch: "model" };

/** Return the place of the first open question. The server says how many calls of the same answer wait behind it. */
export function queueOf(state: SessionState): Queue {
  const question = state.questions[0];
  if (!question) return { place: 0, total: 0, isOpen: false, next: [] };
  const others = state.questions.slice(1);
  const behind = question.kind === "permission" ? question.behind : 0;
  const calls = question.kind === "permission" ? callsOfAnswer(state, question) : [];
  const at = calls.findIndex((call) => call.key === (question as { rowKey?: string | null }).rowKey);
  // Questions of the same answer that were decided already.
  const decided = calls.slice(0, Math.max(0, at)).filter((call) => call.decisions.length > 0).length;
  const waiting = calls.slice(at + 1).filter((call) => call.start === null);
  return {
    place: decided + 1,
    total: decided + 1 + behind + others.length,
    isOpen: behind > 0,
    next: [
      ...others.map((one) => ({ what: KINDS[one.kind], subject: one.kind === "permission" ? describeRequest(one.request) : one.kind === "input" ? one.question : "" })),
      ...(behind > 0 ? waiting.map((call) => ({ what: call.tool, subject: toolText(call.args, call.intention) })) : []),
    ],
  };
}

/** Return the calls of the answer that a question is about, in their order. */
function callsOfAnswer(state: SessionState, question: Extract<Question, { kind: "permission" }>): CallRow[] {
  const rows = question.agentId ? state.agents[question.agentId]?.rows ?? [] : state.rows;
  const asking = rows.findLast((row): row is CallRow => row.kind === "call" && row.key === question.rowKey);
  return asking ? rows.filter((row): row is CallRow => row.kind === "call" && row.eventId === asking.eventId) : [];
}
