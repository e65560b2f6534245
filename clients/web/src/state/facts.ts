// What people ask about a session: its cost, its slowest tool, its decisions, and why it stopped. Pure.

import { factsOfRuns, PEOPLES, sumTimes, type RunFacts } from "./runs.ts";
import type { CallRow, Row, SessionState, Span, Usage } from "./types.ts";

export interface ModelSum {
  model: string;
  calls: number;
  input: number;
  output: number;
  cacheRead: number;
  costUsd: number | null;
}

export interface ToolSum {
  tool: string;
  calls: number;
  failed: number;
  /** The time in the tool, without waiting for people, in milliseconds. */
  totalMs: number;
  longestMs: number;
  longestKey: string | null;
}

export interface Facts {
  models: ModelSum[];
  costUsd: number | null;
  input: number;
  output: number;
  cacheRead: number;
  tools: ToolSum[];
  slowest: ToolSum | null;
  /** How the time of all runs was spent: each moment counts once, as the server counts. */
  modelMs: number;
  toolMs: number;
  waitMs: number;
  runMs: number;
  stop: string;
  stopOk: boolean;
}

/** Return the sums of a session. `stored` is its usage by model as the server keeps it, which counts from the beginning; `runs` are the facts of its runs. */
export function factsOf(state: SessionState, stored: Record<string, any> | null, runs: readonly RunFacts[] = factsOfRuns(state, [])): Facts {
  const kept = stored && Object.keys(stored).length > 0 ? stored : state.metrics;
  const models = Object.keys(kept).length > 0 ? Object.entries(kept).map(modelSum) : sumUsage(state.usage);
  const costs = models.map((model) => model.costUsd).filter((cost): cost is number => cost !== null);
  const tools = toolSums(state.spans, callsOf(state));
  const times = sumTimes(runs);
  const run = state.runs[state.runs.length - 1];
  return {
    models,
    costUsd: costs.length > 0 ? sum(costs) : null,
    input: sum(models.map((model) => model.input)),
    output: sum(models.map((model) => model.output)),
    cacheRead: sum(models.map((model) => model.cacheRead)),
    tools,
    slowest: tools[0] ?? null,
    modelMs: times.modelMs,
    toolMs: times.toolsMs,
    waitMs: times.waitingMs,
    runMs: sum(runs.map((one) => one.totalMs)),
    stop: stopText(state, run?.stop ?? null),
    stopOk: run?.ok ?? true,
  };
}

function stopText(state: SessionState, stop: string | null): string {
  if (state.questions.length > 0) return "It waits for you";
  if (state.working) return "It is running";
  return stop ?? (state.runs.length === 0 ? "Not prompted yet" : "Finished");
}

function modelSum([model, value]: [string, any]): ModelSum {
  const tokens = value?.usage ?? {};
  return {
    model, calls: value?.requests?.count ?? 0, input: tokens.inputTokens ?? 0, output: tokens.outputTokens ?? 0,
    cacheRead: tokens.cacheReadTokens ?? 0, costUsd: typeof value?.costUsd === "number" ? value.costUsd : null,
  };
}

function sumUsage(usage: readonly Usage[]): ModelSum[] {
  const found = new Map<string, ModelSum>();
  for (const call of usage) {
    const known = found.get(call.model) ?? { model: call.model, calls: 0, input: 0, output: 0, cacheRead: 0, costUsd: null };
    known.calls += 1;
    known.input += call.input;
    known.output += call.output;
    known.cacheRead += call.cacheRead;
    if (call.costUsd !== null) known.costUsd = (known.costUsd ?? 0) + call.costUsd;
    found.set(call.model, known);
  }
  return [...found.values()];
}

/** Return all calls of a session, those of its sub-agents included. */
export function callsOf(state: SessionState): CallRow[] {
  const lists: Row[][] = [state.rows, ...Object.values(state.agents).map((agent) => agent.rows)];
  return lists.flatMap((rows) => rows.filter((row): row is CallRow => row.kind === "call"));
}

function toolSums(spans: readonly Span[], calls: readonly CallRow[]): ToolSum[] {
  const waits = new Map<string, number>();
  for (const span of spans) {
    if (span.kind === "wait" && span.rowKey) waits.set(span.rowKey, (waits.get(span.rowKey) ?? 0) + ((span.end ?? span.start) - span.start));
  }
  const found = new Map<string, ToolSum>();
  for (const call of calls) {
    const known = found.get(call.tool) ?? { tool: call.tool, calls: 0, failed: 0, totalMs: 0, longestMs: 0, longestKey: null };
    known.calls += 1;
    known.failed += call.status === "failed" || call.status === "denied" ? 1 : 0;
    if (call.start !== null && call.end !== null) {
      const ms = PEOPLES.has(call.tool) ? 0 : Math.max(0, call.end - call.start - (waits.get(call.key) ?? 0));
      known.totalMs += ms;
      if (ms >= known.longestMs) {
        known.longestMs = ms;
        known.longestKey = call.key;
      }
    }
    found.set(call.tool, known);
  }
  return [...found.values()].sort((one, other) => other.totalMs - one.totalMs);
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
