// The rows of a timeline, from the spans of a run, and its ruler. Pure.

import type { SessionState, Span, SpanKind } from "./types.ts";

export interface Bar extends Span {
  depth: number;
}

export interface Window {
  from: number;
  to: number;
}

export interface KindSum {
  kind: SpanKind;
  ms: number;
}

export const KINDS: Record<SpanKind | "gap", string> = {
  model: "Model", tool: "Tools", wait: "Waiting for people", agent: "Sub-agents", summary: "Summaries", gap: "Server and gaps",
};

/** Return the bars of a run in the order of their beginning, those of a sub-agent below its own. */
export function barsOf(state: SessionState, run: number | null): Bar[] {
  const wanted = state.spans.filter((span) => run === null || span.run === run);
  const byAgent = new Map<string | null, Span[]>();
  for (const span of wanted) {
    // The bar of an agent is among those of its parent.
    const lane = span.kind === "agent" ? state.agents[span.agentId ?? ""]?.parent ?? null : span.agentId;
    const known = lane !== null && state.agents[lane] ? lane : null;
    const list = byAgent.get(known);
    if (list) list.push(span);
    else byAgent.set(known, [span]);
  }
  const bars: Bar[] = [];
  const add = (lane: string | null, depth: number): void => {
    for (const span of (byAgent.get(lane) ?? []).sort((one, other) => one.start - other.start)) {
      // A wait is a part of its call.
      bars.push({ ...span, depth: depth + (span.kind === "wait" && span.rowKey !== null ? 1 : 0) });
      if (span.kind === "agent" && span.agentId && depth < 8) add(span.agentId, depth + 1);
    }
  };
  add(null, 0);
  return bars;
}

/** Return the times of a run, or of all of them. */
export function windowOf(state: SessionState, run: number | null, now: number): Window {
  const runs = run === null ? state.runs : state.runs.filter((one) => one.index === run);
  const spans = state.spans.filter((span) => run === null || span.run === run);
  const from = Math.min(...runs.map((one) => one.start), ...spans.map((span) => span.start));
  const to = Math.max(...runs.map((one) => one.end ?? now), ...spans.map((span) => span.end ?? now));
  return Number.isFinite(from) && to > from ? { from, to } : { from: state.started, to: state.started + 1000 };
}

/** What counts where spans overlap: a wait is a part of its call, and counts as a wait alone. */
const PRECEDENCE: SpanKind[] = ["wait", "model", "agent", "tool", "summary"];

/** Return the time that each kind takes at the top level, where overlapping spans count once, and the rest. */
export function kindSums(bars: readonly Bar[], window: Window, now: number): (KindSum | { kind: "gap"; ms: number })[] {
  const changes: { time: number; kind: SpanKind; by: number }[] = [];
  for (const bar of bars) {
    if (bar.depth > (bar.kind === "wait" ? 1 : 0)) continue;
    changes.push({ time: bar.start, kind: bar.kind, by: 1 }, { time: bar.end ?? now, kind: bar.kind, by: -1 });
  }
  changes.sort((one, other) => one.time - other.time);
  const open: Record<SpanKind, number> = { wait: 0, model: 0, agent: 0, tool: 0, summary: 0 };
  const sums: Record<SpanKind, number> = { wait: 0, model: 0, agent: 0, tool: 0, summary: 0 };
  changes.forEach((change, at) => {
    open[change.kind] += change.by;
    const kind = PRECEDENCE.find((one) => open[one] > 0);
    if (kind) sums[kind] += (changes[at + 1]?.time ?? change.time) - change.time;
  });
  const rest = window.to - window.from - PRECEDENCE.reduce((total, kind) => total + sums[kind], 0);
  return [...PRECEDENCE.filter((kind) => sums[kind] > 0).map((kind) => ({ kind, ms: sums[kind] })), { kind: "gap" as const, ms: Math.max(0, rest) }];
}

/** Return where each kind of bar is, in columns of equal width: `from` and `to` are between 0 and 1. */
export function merge(bars: readonly Bar[], window: Window, now: number, columns: number): { kind: SpanKind; from: number; to: number }[] {
  const length = window.to - window.from;
  const filled = new Map<SpanKind, Uint8Array>();
  for (const bar of bars) {
    const lane = filled.get(bar.kind) ?? new Uint8Array(columns);
    filled.set(bar.kind, lane);
    const first = Math.floor(((bar.start - window.from) / length) * columns);
    const last = Math.max(first + 1, Math.ceil((((bar.end ?? now) - window.from) / length) * columns));
    lane.fill(1, Math.max(0, Math.min(columns - 1, first)), Math.min(columns, last));
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
