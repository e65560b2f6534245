// The runs of a session as blocks: a prompt as the head, steps, and a foot. Pure.

import type { RunOfSession } from "../generated/wire.ts";
import { NetChanges } from "./calls.ts";
import type { CallRow, Row, Run, SessionState, Span } from "./types.ts";

/** The tools whose time is that of a person. */
export const PEOPLES: ReadonlySet<string> = new Set(["ask_user", "exit_plan_mode"]);

/** How the time of a run was spent, in milliseconds. Each moment counts once. */
export interface Times {
  waitingMs: number;
  modelMs: number;
  toolsMs: number;
  otherMs: number;
}

export interface RunFacts extends Times {
  totalMs: number;
  tokensIn: number;
  tokensOut: number;
  costUsd: number | null;
}

/** What the transcript shows, one below the other. `run` is the index of the run; -1 before the first prompt. */
export type Item =
  | { kind: "row"; key: string; run: number; row: Row }
  | { kind: "steps"; key: string; run: number; rows: Row[] }
  | { kind: "foot"; key: string; run: number; from: number; to: number };

/** Return the items of a transcript: neighbouring steps that are as usual are folded into one. */
export function itemsOf(state: SessionState): Item[] {
  const items: Item[] = [];
  let run = -1;
  let begin = 0;
  let steps: Row[] = [];
  const end = (to: number): void => {
    if (run >= 0) items.push({ kind: "foot", key: `foot ${run}`, run, from: begin, to });
    begin = to;
  };
  const flush = (): void => {
    const first = steps[0];
    // A step alone takes one line as well.
    if (steps.length === 1) items.push({ kind: "row", key: first!.key, run, row: first! });
    else if (first) items.push({ kind: "steps", key: `steps ${first.key}`, run, rows: steps });
    steps = [];
  };
  state.rows.forEach((row, at) => {
    if (isUsualStep(row, state)) {
      steps.push(row);
      return;
    }
    flush();
    if (isHead(row)) {
      end(at);
      run += 1;
    }
    items.push({ kind: "row", key: row.key, run, row });
  });
  flush();
  end(state.rows.length);
  return items;
}

/** Return whether a row is the prompt that begins a run. The same is the case for the runs of the state. */
export function isHead(row: Row): boolean {
  return row.kind === "prompt" && (row.source === null || row.source === "user") && row.delivery !== "steering";
}

/** Return whether nothing about a step needs to be seen: what is unusual, and what has changed files, is not folded away. */
function isUsualStep(row: Row, state: SessionState): boolean {
  if (row.kind === "thought") return !row.streaming;
  if (row.kind !== "call") return false;
  return row.status === "done" && !row.diff && row.pictures.length === 0 && unusualOf(row, state).length === 0;
}

export interface Unusual {
  text: string;
  bad: boolean;
  title?: string;
}

/** Return what is unusual about a call, in a few words each; that it was approved is not. */
export function unusualOf(row: CallRow, state: SessionState): Unusual[] {
  const found: Unusual[] = [];
  const last = row.decisions[row.decisions.length - 1];
  if (last && !last.allowed) found.push({ text: last.kind === "denied-by-rules" ? "denied by a rule" : "denied", bad: true, title: `Denied by ${last.by}` });
  else if (row.status === "denied") found.push({ text: "denied", bad: true });
  if (row.edited) found.push({ text: "edited", bad: false, title: "The arguments were changed before the call ran" });
  if (row.sandboxed === false) found.push({ text: "outside of the sandbox", bad: true });
  if (row.exitCode !== null && row.exitCode !== 0) found.push({ text: `exit ${row.exitCode}`, bad: true });
  if (row.agentId !== null) {
    const agent = state.agents[row.agentId];
    if (agent && agent.status !== "completed" && agent.status !== "running") found.push({ text: agent.status, bad: true });
  }
  return found;
}

/** Return the sum of the steps of a fold, as "view, grep, bash". */
export function toolsOf(rows: readonly Row[]): string {
  const names = new Map<string, number>();
  for (const row of rows) {
    const name = row.kind === "call" ? row.tool : "reasoning";
    names.set(name, (names.get(name) ?? 0) + 1);
  }
  return [...names].map(([name, times]) => (times > 1 && name !== "reasoning" ? `${name} ×${times}` : name)).join(", ");
}

/** Return the facts of each run. `counted` are the runs as the server counts them; others are computed from the log. */
export function factsOfRuns(state: SessionState, counted: readonly RunOfSession[]): RunFacts[] {
  const byServer = assign(state.runs, counted);
  const spans = grouped(state.spans, state.runs.length);
  const usage = grouped(state.usage, state.runs.length);
  return state.runs.map((run, at) => {
    const mine = byServer[at]!;
    const isCounted = mine.length > 0;
    const costs = (isCounted ? mine : usage[at]!).map((one) => one.costUsd).filter((cost): cost is number => typeof cost === "number");
    const times = isCounted ? sumTimes(mine) : timesOf(spans[at]!, run.start, run.end ?? state.changed);
    return {
      ...times,
      totalMs: times.waitingMs + times.modelMs + times.toolsMs + times.otherMs,
      tokensIn: isCounted ? sum(mine.map((one) => one.inputTokens)) : sum(usage[at]!.map((call) => call.input)),
      tokensOut: isCounted ? sum(mine.map((one) => one.outputTokens)) : sum(usage[at]!.map((call) => call.output)),
      costUsd: costs.length > 0 ? sum(costs) : null,
    };
  });
}

function grouped<T extends { run: number }>(all: readonly T[], runs: number): T[][] {
  const found: T[][] = Array.from({ length: runs }, () => []);
  for (const one of all) found[one.run]?.push(one);
  return found;
}

/** Assign the runs that the server has counted to those of the state; those without a prompt of a person belong to the one before. */
function assign(runs: readonly Run[], counted: readonly RunOfSession[]): RunOfSession[][] {
  const found: RunOfSession[][] = runs.map(() => []);
  const indexes = new Map(runs.map((run, at) => [run.interactionId, at]));
  let last = -1;
  for (const one of counted) {
    const at = indexes.get(one.interactionId);
    if (at !== undefined) last = at;
    // Of a conversation that was rewound, the runs after the prompt are gone.
    else if (runs[last]?.interactionId === "" || last < 0) continue;
    found[last]?.push(one);
  }
  return found;
}

/** Return how a time was spent: waiting comes before models, and these before tools, as the server counts. */
export function timesOf(spans: readonly Span[], from: number, to: number): Times {
  const kinds = ["wait", "model", "tool"] as const;
  const changes = spans.flatMap((span) => {
    // The log has the calls of these tools, and not their questions.
    const kind = span.kind === "summary" ? "model" : span.kind === "tool" && PEOPLES.has(span.label) ? "wait" : span.kind;
    return kind === "agent" ? [] : [{ time: Math.max(from, span.start), kind, by: 1 }, { time: Math.min(to, span.end ?? to), kind, by: -1 }];
  }).sort((one, other) => one.time - other.time);
  const open = { wait: 0, model: 0, tool: 0 };
  const sums = { wait: 0, model: 0, tool: 0 };
  changes.forEach((change, at) => {
    open[change.kind] += change.by;
    const kind = kinds.find((one) => open[one] > 0);
    if (kind) sums[kind] += Math.max(0, (changes[at + 1]?.time ?? change.time) - change.time);
  });
  return { waitingMs: sums.wait, modelMs: sums.model, toolsMs: sums.tool, otherMs: Math.max(0, to - from - sums.wait - sums.model - sums.tool) };
}

/** Return the files that calls among some rows have changed, by path, with the numbers of lines that differ in the end. */
export function filesOf(rows: readonly Row[], state: SessionState): Map<string, { added: number; removed: number }> {
  const found = new Map<string, NetChanges>();
  const add = (some: readonly Row[]): void => {
    for (const row of some) {
      if (row.kind !== "call") continue;
      if (row.agentId !== null) add(state.agents[row.agentId]?.rows ?? []);
      const path = row.diff && row.status === "done" ? pathOf(row.diff) : "";
      if (!path) continue;
      const changes = found.get(path) ?? new NetChanges();
      changes.apply(row.diff);
      found.set(path, changes);
    }
  };
  add(rows);
  return new Map([...found].map(([path, { added, removed }]) => [path, { added, removed }]));
}

/** Return the path that a unified diff of one file names. */
function pathOf(diff: string): string {
  const [before = "", after = ""] = diff.split("\n", 2);
  return (after.startsWith("+++ /dev/null") ? before : after).slice(4).replace(/^[ab]\//, "").replace(/\t.*$/, "");
}

export function sumTimes(all: readonly Times[]): Times {
  return {
    waitingMs: sum(all.map((one) => one.waitingMs)), modelMs: sum(all.map((one) => one.modelMs)),
    toolsMs: sum(all.map((one) => one.toolsMs)), otherMs: sum(all.map((one) => one.otherMs)),
  };
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
