// The timeline of a session: its runs, the bars in each, what took longest, and the scale that they share. Pure.

import { toolText } from "./calls.ts";
import { withoutFolder } from "./diff.ts";
import { callsOf, type Facts } from "./facts.ts";
import { duration, tokens } from "./format.ts";
import { timesOf } from "./runs.ts";
import type { CallRow, Run, SessionState, Span, SpanKind } from "./types.ts";

export interface Bar extends Span {
  depth: number;
  /** The command, the file or the model that the bar is about. */
  subject: string;
  /** The length without waits for people, in milliseconds; that of a wait is its own. */
  workMs: number;
  /** Whether nothing else in the timeline is a part of this bar. */
  leaf: boolean;
}

/** A part of the time, in milliseconds. */
export interface Window {
  from: number;
  to: number;
}

export interface KindSum {
  kind: SpanKind | "gap";
  ms: number;
}

/** The time in a run, in which waits for people take none unless they are wanted. */
export interface Clock {
  /** Return the place of a time, in milliseconds since the beginning of the run. */
  at(time: number): number;
  length: number;
}

/** One run with everything in it. Times in `window` are since the epoch. */
export interface Lane {
  run: Run;
  bars: readonly Bar[];
  window: Window;
  /** The time in which a question was open, in milliseconds. */
  waitedMs: number;
  clock: Clock;
  withWaits: boolean;
  /** What it was made from. */
  spans: readonly Span[];
}

export interface Longest {
  bar: Bar;
  lane: Lane;
  /** Why it took so long, as far as the log tells. */
  why: string;
}

export const KINDS: Record<SpanKind | "gap", string> = {
  model: "Model", tool: "Tools", wait: "Waiting for people", agent: "Sub-agents", summary: "Summaries", gap: "Server and gaps",
};
const MOST_LONGEST = 5;
/** A part of the time to the first token from which on it is the reason. */
const SLOW_START = 0.5;

/**
 * Return the runs of a session with their bars; `withWaits` keeps the length of waits for people. `before` is what was
 * returned for an earlier state: runs that have ended since are taken from there.
 */
export function lanesOf(state: SessionState, withWaits: boolean, before: readonly Lane[] = []): Lane[] {
  const now = state.changed;
  const byRun = new Map<number, Span[]>();
  for (const span of state.spans) {
    const list = byRun.get(span.run);
    if (list) list.push(span);
    else byRun.set(span.run, [span]);
  }
  const runs: readonly Run[] = state.runs.length > 0 || state.spans.length === 0 ? state.runs
    : [{ index: 0, interactionId: "", prompt: "Before the first prompt", start: state.started, end: state.changed, stop: null, ok: true, ended: true }];
  let subjects: Subjects | null = null;
  return runs.map((run, at) => {
    const spans = byRun.get(run.index) ?? [];
    const known = before[at];
    if (known && known.run === run && run.end !== null && known.withWaits === withWaits && known.spans.length === spans.length && spans.every((span, index) => span === known.spans[index] && span.end !== null)) return known;
    const bars = barsOf(state, spans, subjects ??= new Subjects(state), now);
    const window = windowOf(run, spans, now);
    return { run, bars, window, waitedMs: timesOf(spans, window.from, window.to).waitingMs, clock: clockOf(bars, window, now, withWaits), withWaits, spans };
  });
}

/** What bars are about: looked up once for the whole session. */
class Subjects {
  private readonly calls: ReadonlyMap<string, CallRow>;
  private readonly asked: ReadonlyMap<string, string>;
  /** The calls that have started a sub-agent. */
  readonly delegating: ReadonlySet<string>;

  private readonly folder: string;

  constructor(state: SessionState) {
    this.folder = state.folder;
    this.calls = new Map(callsOf(state).map((call) => [call.key, call]));
    this.asked = new Map(state.decisions.map((decision) => [`wait ${decision.requestId}`, decision.what]));
    this.delegating = new Set([...this.calls.values()].filter((call) => call.agentId !== null).map((call) => call.key));
  }

  of(span: Span): string {
    const call = span.rowKey === null ? undefined : this.calls.get(span.rowKey);
    const text = span.kind === "wait" ? this.asked.get(span.key) ?? (call ? toolText(call.args, call.intention) : "")
      : span.kind === "tool" || span.kind === "agent" ? (call ? toolText(call.args, call.intention) : "") : span.label;
    const line = text.split("\n", 1)[0]!.trim();
    return withoutFolder(line, this.folder);
  }
}

/** Return the bars of a run in the order of their beginning; the waits and the sub-agent of a call are below it. */
function barsOf(state: SessionState, spans: readonly Span[], subjects: Subjects, now: number): Bar[] {
  const waits = new Map<string, number>();
  const byAgent = new Map<string | null, Span[]>();
  for (const span of spans) {
    if (span.kind === "wait" && span.rowKey !== null) waits.set(span.rowKey, (waits.get(span.rowKey) ?? 0) + lengthOf(span, now));
    // The bar of an agent is among those of its parent.
    const lane = span.kind === "agent" ? state.agents[span.agentId ?? ""]?.parent ?? null : span.agentId;
    const known = lane !== null && state.agents[lane] ? lane : null;
    const list = byAgent.get(known);
    if (list) list.push(span);
    else byAgent.set(known, [span]);
  }
  const bars: Bar[] = [];
  const add = (lane: string | null, depth: number): void => {
    const all = (byAgent.get(lane) ?? []).sort((one, other) => one.start - other.start);
    const calls = new Set(all.flatMap((span) => (span.kind === "tool" && span.rowKey !== null ? [span.rowKey] : [])));
    const parts = new Map<string, Span[]>();
    const ofCall = (span: Span): boolean => (span.kind === "wait" || span.kind === "agent") && span.rowKey !== null && calls.has(span.rowKey);
    for (const span of all) {
      if (ofCall(span)) parts.set(span.rowKey!, [...parts.get(span.rowKey!) ?? [], span]);
    }
    for (const span of all) {
      if (ofCall(span)) continue;
      addOne(span, depth);
      if (span.kind !== "tool" || span.rowKey === null) continue;
      for (const part of parts.get(span.rowKey) ?? []) addOne(part, depth + 1);
      parts.delete(span.rowKey);
    }
  };
  const addOne = (span: Span, depth: number): void => {
    const waited = span.kind === "tool" && span.rowKey !== null ? waits.get(span.rowKey) ?? 0 : 0;
    bars.push({
      ...span,
      depth,
      subject: subjects.of(span), workMs: Math.max(0, lengthOf(span, now) - waited),
      leaf: span.kind !== "agent" && !(span.kind === "tool" && span.rowKey !== null && subjects.delegating.has(span.rowKey)),
    });
    if (span.kind === "agent" && span.agentId && depth < 16) add(span.agentId, depth + 1);
  };
  add(null, 0);
  return bars;
}

function lengthOf(span: Span, now: number): number {
  return Math.max(0, (span.end ?? now) - span.start);
}

function windowOf(run: Run, spans: readonly Span[], now: number): Window {
  let from = run.start;
  let to = run.end ?? now;
  for (const span of spans) {
    from = Math.min(from, span.start);
    to = Math.max(to, span.end ?? now);
  }
  return { from, to: Math.max(to, from + 1) };
}

/** Return the clock of a run. It stands still while people are waited for and nothing else happens. */
function clockOf(bars: readonly Bar[], window: Window, now: number, withWaits: boolean): Clock {
  const still = withWaits ? [] : standstills(bars, now);
  const at = (time: number): number => still.reduce((rest, one) => rest - Math.max(0, Math.min(time, one.to) - one.from), time - window.from);
  return { at, length: Math.max(1, at(window.to)) };
}

function standstills(bars: readonly Bar[], now: number): Window[] {
  const changes: { time: number; waits: number; works: number }[] = [];
  for (const bar of bars) {
    if (!bar.leaf) continue;
    // A call does not work while it waits for its approval.
    const [waits, works] = bar.kind === "wait" ? [1, bar.rowKey === null ? 0 : -1] : [0, 1];
    changes.push({ time: bar.start, waits, works }, { time: bar.end ?? now, waits: -waits, works: -works });
  }
  changes.sort((one, other) => one.time - other.time);
  const found: Window[] = [];
  let waits = 0;
  let works = 0;
  changes.forEach((change, index) => {
    waits += change.waits;
    works += change.works;
    const next = changes[index + 1];
    if (next && next.time > change.time && waits > 0 && works <= 0) found.push({ from: change.time, to: next.time });
  });
  return found;
}

/** Return what took longest in the session, and why, the longest first. A bar with parts is not among them: its parts are. */
export function longestOf(lanes: readonly Lane[], state: SessionState): Longest[] {
  const best: { bar: Bar; lane: Lane }[] = [];
  for (const lane of lanes) {
    for (const bar of lane.bars) {
      if (!bar.leaf || bar.workMs <= 0) continue;
      if (best.length === MOST_LONGEST && bar.workMs <= best[MOST_LONGEST - 1]!.bar.workMs) continue;
      best.push({ bar, lane });
      best.sort((one, other) => other.bar.workMs - one.bar.workMs);
      best.splice(MOST_LONGEST);
    }
  }
  return best.map(({ bar, lane }) => ({ bar, lane, why: whyOf(bar, state) }));
}

function whyOf(bar: Bar, state: SessionState): string {
  const parts: string[] = [];
  if (bar.agentId !== null && bar.kind !== "agent") parts.push(`in ${state.agents[bar.agentId]?.name ?? "a sub-agent"}`);
  if (bar.kind === "model") {
    if (bar.firstMs !== null && bar.firstMs > SLOW_START * bar.workMs) parts.push(`${duration(bar.firstMs)} until the first token`);
    if (bar.tokens && bar.tokens.input + bar.tokens.output > 0) parts.push(`${tokens(bar.tokens.input)} tokens in, ${tokens(bar.tokens.output)} out`);
  }
  const waited = bar.kind === "tool" ? (bar.end ?? state.changed) - bar.start - bar.workMs : 0;
  if (waited > 0) parts.push(`after a wait of ${duration(waited)}`);
  if (bar.end === null) parts.push("still running");
  else if (!bar.ok) parts.push("failed");
  return parts.join(", ");
}

/** Return how the time of all runs was spent, as the line of facts says it: sub-agents are models and tools. */
export function sumsOf(facts: Facts): KindSum[] {
  const rest = facts.runMs - facts.waitMs - facts.modelMs - facts.toolMs;
  const all: KindSum[] = [{ kind: "wait", ms: facts.waitMs }, { kind: "model", ms: facts.modelMs }, { kind: "tool", ms: facts.toolMs }, { kind: "gap", ms: Math.max(0, rest) }];
  return all.filter((one) => one.ms > 0 || one.kind === "gap");
}

/** Return where each kind of bar is on the clock of a run, in columns of equal width of a scale: `from` and `to` are between 0 and 1. */
export function merge(bars: readonly Bar[], clock: Clock, scale: Window, now: number, columns: number): { kind: SpanKind; from: number; to: number }[] {
  const length = scale.to - scale.from;
  const filled = new Map<SpanKind, Uint8Array>();
  for (const bar of bars) {
    const first = Math.floor(((clock.at(bar.start) - scale.from) / length) * columns);
    const last = Math.max(first + 1, Math.ceil(((clock.at(bar.end ?? now) - scale.from) / length) * columns));
    if (last <= 0 || first >= columns) continue;
    const lane = filled.get(bar.kind) ?? new Uint8Array(columns);
    filled.set(bar.kind, lane);
    lane.fill(1, Math.max(0, first), Math.min(columns, last));
  }
  return [...filled].flatMap(([kind, lane]) => {
    const parts: { kind: SpanKind; from: number; to: number }[] = [];
    for (let at = 0; at < columns; at++) {
      if (!lane[at]) continue;
      let end = at;
      while (end < columns && lane[end]) end += 1;
      parts.push({ kind, from: at / columns, to: end / columns });
      at = end;
    }
    return parts;
  });
}

/** Return round times for a ruler, as offsets from the beginning in milliseconds. */
export function ticks(lengthMs: number, most: number): number[] {
  const steps = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000, 10_000, 15_000, 30_000, 60_000, 120_000, 300_000, 600_000, 1_800_000, 3_600_000, 7_200_000, 21_600_000, 86_400_000];
  const step = steps.find((one) => lengthMs / one <= most) ?? steps[steps.length - 1]!;
  return Array.from({ length: Math.floor(lengthMs / step) + 1 }, (_, at) => at * step);
}

/** Return the window after zooming by a factor around a place between 0 and 1, within the limits. */
export function zoom(window: Window, whole: Window, factor: number, place: number): Window {
  const length = Math.min(whole.to - whole.from, Math.max(5, (window.to - window.from) * factor));
  const center = window.from + (window.to - window.from) * place;
  const from = Math.min(Math.max(whole.from, center - length * place), whole.to - length);
  return { from, to: from + length };
}

export interface Label {
  where: "inside" | "right" | "left";
  /** The width that the label may have, in pixels. */
  widthPx: number;
}

/** The width of a character of a label, and the room around it, in pixels: rather too much than too little. */
const CHARACTER_PX = 6.6;
const ROOM_PX = 14;

/** Return where the label of a bar is: inside if it fits, else at the side that has the most room. */
export function placeLabel(text: string, fromPx: number, toPx: number, trackPx: number): Label {
  const wanted = text.length * CHARACTER_PX + ROOM_PX;
  const [inside, right, left] = [toPx - fromPx, trackPx - toPx, fromPx];
  if (inside >= wanted) return { where: "inside", widthPx: inside };
  if (right >= wanted) return { where: "right", widthPx: right };
  if (left >= wanted) return { where: "left", widthPx: left };
  const most = Math.max(inside, right, left);
  return { where: most === inside ? "inside" : most === right ? "right" : "left", widthPx: most };
}
