// What the model calls of a session used: by run, and as stacked series for plots. Pure.

import type { Run, Usage } from "./types.ts";

export interface RunSum {
  run: Run;
  calls: number;
  input: number;
  cacheRead: number;
  output: number;
  reasoning: number;
  costUsd: number | null;
  /** Of the model calls, in milliseconds. */
  modelMs: number;
}

/** Return the sums of each run that has called a model. */
export function sumByRun(runs: readonly Run[], usage: readonly Usage[]): RunSum[] {
  const sums = new Map<number, RunSum>();
  for (const call of usage) {
    const run = runs[call.run];
    if (!run) continue;
    const sum = sums.get(call.run) ?? { run, calls: 0, input: 0, cacheRead: 0, output: 0, reasoning: 0, costUsd: null, modelMs: 0 };
    sums.set(call.run, sum);
    sum.calls += 1;
    sum.input += call.input;
    sum.cacheRead += call.cacheRead;
    sum.output += call.output;
    sum.reasoning += call.reasoning;
    sum.modelMs += call.durationMs;
    if (call.costUsd !== null) sum.costUsd = (sum.costUsd ?? 0) + call.costUsd;
  }
  return [...sums.values()].sort((one, other) => one.run.index - other.run.index);
}

export const PARTS = { cached: "cached input", input: "new input", reasoning: "reasoning", output: "output" } as const;
export type Part = keyof typeof PARTS;

/** Return the tokens of a call by part: no token counts twice. */
export function partsOf(call: Usage): Record<Part, number> {
  const cached = Math.min(call.cacheRead, call.input);
  const reasoning = Math.min(call.reasoning, call.output);
  return { cached, input: call.input - cached, reasoning, output: call.output - reasoning };
}

/** Return the parts that occur in any of the calls. Input and output always do. */
export function partsIn(calls: readonly Usage[]): Part[] {
  return (Object.keys(PARTS) as Part[]).filter((part) => part === "input" || part === "output" || calls.some((call) => partsOf(call)[part] > 0));
}
