// What the model calls used: plots of tokens, cost and context, and the sums by model and by run.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import { onSchemeChange } from "../host.ts";
import type uPlot from "uplot";
import type { Facts } from "../state/facts.ts";
import { clock, count, dollars, duration, tokens } from "../state/format.ts";
import { PARTS, partsIn, partsOf, sumByRun, type Part } from "../state/call_usage.ts";
import type { SessionState, Usage } from "../state/types.ts";
import { go } from "../route.ts";
import { Table } from "./common.tsx";

const COLORS: Record<Part, string> = { cached: "--tool", input: "--model", reasoning: "--summary", output: "--agent" };
/** The runs and calls that a table shows at first: a session may have thousands. */
const FIRST_ROWS = 100;

export function UsageView({ state, facts, live }: { state: SessionState; facts: Facts; live: boolean }) {
  return (
    <div class="page usage" tabIndex={0} role="region" aria-label="Usage">
      <ModelSums facts={facts} />
      {state.usage.some((call) => call.input + call.output > 0) ? <Plots calls={state.usage} state={state} /> : state.usage.length > 0 ? (
        <p class="faint">The provider of the model did not say how many tokens its calls took.</p>
      ) : (
        <p class="faint">{facts.models.length > 0
          ? "Only the sums are known: the server that made these calls was told not to keep them one by one, or is older than that."
          : live ? "No model was called yet." : "No usage is stored for this session."}</p>
      )}
      {state.usage.length > 0 && <RunSums state={state} />}
      {state.usage.length > 0 && <Calls calls={state.usage} state={state} />}
    </div>
  );
}

function cachedText(cacheRead: number, input: number): string {
  return `${tokens(cacheRead)}${input > 0 ? ` (${Math.round((cacheRead / input) * 100)}%)` : ""}`;
}

function ModelSums({ facts }: { facts: Facts }) {
  if (facts.models.length === 0) return null;
  return (
    <Table label="Usage by model" class="numbers">
      <caption>By model</caption>
      <thead><tr><th scope="col">Model</th><th scope="col">Cost</th><th scope="col">Calls</th><th scope="col">Input</th><th scope="col">of it cached</th><th scope="col">Output</th></tr></thead>
      <tbody>{facts.models.map((one) => (
        <tr key={one.model}><th scope="row">{one.model}</th><td>{dollars(one.costUsd)}</td><td>{one.calls}</td><td>{tokens(one.input)}</td><td>{cachedText(one.cacheRead, one.input)}</td><td>{tokens(one.output)}</td></tr>
      ))}</tbody>
      {facts.models.length > 1 && <tfoot><tr><th scope="row">All</th><td>{dollars(facts.costUsd)}</td><td>{facts.models.reduce((sum, one) => sum + one.calls, 0)}</td><td>{tokens(facts.input)}</td><td>{cachedText(facts.cacheRead, facts.input)}</td><td>{tokens(facts.output)}</td></tr></tfoot>}
    </Table>
  );
}

function RunSums({ state }: { state: SessionState }) {
  const [all, setAll] = useState(false);
  const sums = useMemo(() => sumByRun(state.runs, state.usage), [state.runs, state.usage]);
  const top = useMemo(() => sums.reduce((most, one) => Math.max(most, one.costUsd ?? 0), 0), [sums]);
  return (
    <>
      <Table label="Usage by run" class="numbers">
        <caption>By run</caption>
        <thead><tr><th scope="col">Run</th><th scope="col">Calls</th><th scope="col">Input</th><th scope="col">of it cached</th><th scope="col">Output</th><th scope="col">Model time</th><th scope="col">Cost</th></tr></thead>
        <tbody>{sums.slice(0, all ? undefined : FIRST_ROWS).map((one) => (
          <tr key={one.run.index}>
            <th scope="row"><button type="button" class="link run-link" onClick={() => go({ view: "session", id: state.id, tab: "timeline", at: null })}>{one.run.index + 1}: {one.run.prompt.replace(/\s+/g, " ").slice(0, 70)}</button></th>
            <td>{one.calls}</td><td>{tokens(one.input)}</td><td>{cachedText(one.cacheRead, one.input)}</td><td>{tokens(one.output)}</td><td>{duration(one.modelMs)}</td>
            <td class={sums.length > 2 && top > 0 && one.costUsd === top ? "most" : undefined}>{dollars(one.costUsd)}</td>
          </tr>
        ))}</tbody>
      </Table>
      {!all && sums.length > FIRST_ROWS && <button type="button" onClick={() => setAll(true)}>Show all {count(sums.length, "run")}</button>}
    </>
  );
}

function Calls({ calls, state }: { calls: Usage[]; state: SessionState }) {
  const [open, setOpen] = useState(false);
  const [most, setMost] = useState(FIRST_ROWS);
  return (
    <details class="all-calls" onToggle={(event) => setOpen(event.currentTarget.open)}>
      <summary>All {count(calls.length, "model call")} as a table</summary>
      {open && (
        <>
          <Table label="All model calls" class="numbers">
            <thead><tr><th scope="col">#</th><th scope="col">Time</th><th scope="col">Model</th><th scope="col">Agent</th><th scope="col">Input</th><th scope="col">of it cached</th><th scope="col">Output</th><th scope="col">Reasoning</th><th scope="col">First token</th><th scope="col">Duration</th><th scope="col">Ended by</th><th scope="col">Cost</th></tr></thead>
            <tbody>{calls.slice(0, most).map((call, at) => (
              <tr key={at}><td>{at + 1}</td><td>{clock(call.time)}</td><td>{call.model}</td><td>{call.agentId ? state.agents[call.agentId]?.name ?? call.agentId.slice(0, 8) : ""}</td><td>{tokens(call.input)}</td><td>{tokens(call.cacheRead)}</td><td>{tokens(call.output)}</td><td>{call.reasoning ? tokens(call.reasoning) : ""}</td><td>{call.firstMs === null ? "" : duration(call.firstMs)}</td><td>{duration(call.durationMs)}</td><td>{call.finish ?? ""}</td><td>{dollars(call.costUsd)}</td></tr>
            ))}</tbody>
          </Table>
          {calls.length > most && <button type="button" onClick={() => setMost(most + 10 * FIRST_ROWS)}>Show more of {count(calls.length, "call")}</button>}
        </>
      )}
    </details>
  );
}

function Plots({ calls, state }: { calls: Usage[]; state: SessionState }) {
  const number = calls.map((_, at) => at + 1);
  let cost = 0;
  const costs = calls.map((call) => (cost += call.costUsd ?? 0));
  const last = state.context[state.context.length - 1];
  const known = calls.some((call) => call.costUsd !== null);
  const parts = partsIn(calls);
  const sum = (part: Part): number => calls.reduce((total, call) => total + partsOf(call)[part], 0);
  return (
    <div class="plots">
      <Plot title="Tokens of each call" about={`${count(calls.length, "call")}; the largest input has ${tokens(calls.reduce((most, call) => Math.max(most, call.input), 0))} tokens`} x={number} stacked
        series={parts.map((part) => ({ label: PARTS[part], total: tokens(sum(part)), color: COLORS[part], values: calls.map((call) => partsOf(call)[part]) }))} format={tokens} />
      <Plot title="Context" about={last ? `${percent(last.tokens / last.limit)} of ${tokens(last.limit)} tokens are used` : "not known"} x={state.context.map((_, at) => at + 1)}
        series={[{ label: "of the context window", total: last ? percent(last.tokens / last.limit) : "", color: "--model", values: state.context.map((one) => one.tokens / one.limit) }]} format={percent} top={1} />
      {known && <Plot title="Cost so far" about={`${dollars(cost)} in all`} x={number} series={[{ label: "cost", total: dollars(cost), color: "--wait", values: costs }]} format={dollars} />}
    </div>
  );
}

function percent(value: number): string {
  return `${Math.round(value * 100)}%`;
}

interface Series {
  label: string;
  /** Of all calls, for the legend. */
  total: string;
  color: string;
  values: number[];
}

interface PlotProps {
  title: string;
  about: string;
  x: number[];
  series: Series[];
  format: (value: number) => string;
  top?: number;
  /** Bars on top of each other, instead of lines. */
  stacked?: boolean;
}

const HEIGHT = 190;

function Plot({ title, about, x, series, format, top, stacked = false }: PlotProps) {
  const ref = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const [at, setAt] = useState<number | null>(null);
  const data = [x, ...(stacked ? stack(series) : series.map((one) => one.values))] as uPlot.AlignedData;
  const latest = useRef(data);
  latest.current = data;
  useEffect(() => {
    const place = ref.current!;
    let library: typeof uPlot | null = null;
    const make = (): void => {
      if (library === null) return;
      plot.current?.destroy();
      plot.current = new library(options(library, place, series, { format, top, stacked, points: x.length < 60, onCursor: setAt }), latest.current, place);
    };
    let isGone = false;
    void import("uplot").then((module) => {
      if (isGone) return;
      library = module.default;
      make();
    });
    const resize = new ResizeObserver(() => plot.current?.setSize({ width: place.clientWidth, height: HEIGHT }));
    resize.observe(place);
    const ignore = onSchemeChange(make);
    return () => {
      isGone = true;
      resize.disconnect();
      ignore();
      plot.current?.destroy();
      plot.current = null;
    };
  }, [series.map((one) => one.label).join()]);
  useEffect(() => plot.current?.setData(data), [x.length, ...series.map((one) => one.values[one.values.length - 1])]);
  return (
    <figure class="plot">
      <figcaption><strong>{title}</strong> <span class="faint">{about}</span></figcaption>
      <div ref={ref} role="img" aria-label={`${title}. ${about}. ${series.map((one) => `${one.label}: ${one.total}`).join(", ")}.`} />
      <ul class="plot-legend" aria-hidden="true">
        {series.map((one) => (
          <li key={one.label}><i class="swatch" style={{ background: `var(${one.color})` }} />{one.label} <b>{at === null ? one.total : format(one.values[at] ?? 0)}</b></li>
        ))}
        <li class="faint">{at === null ? (stacked ? "all calls" : "now") : `call ${x[at]}`}</li>
      </ul>
    </figure>
  );
}

/** Return each series on top of those before it, the highest first: it is drawn first. */
function stack(series: readonly Series[]): number[][] {
  const heights: number[][] = [];
  for (const one of series) {
    const below = heights[heights.length - 1];
    heights.push(one.values.map((value, at) => value + (below?.[at] ?? 0)));
  }
  return heights.reverse();
}

interface Look {
  format: (value: number) => string;
  top: number | undefined;
  stacked: boolean;
  points: boolean;
  onCursor: (at: number | null) => void;
}

function options(library: typeof uPlot, place: HTMLElement, series: readonly Series[], { format, top, stacked, points, onCursor }: Look): uPlot.Options {
  // As a canvas takes it: a property may hold a function of the scheme.
  const color = (name: string): string => {
    place.style.color = `var(${name})`;
    return getComputedStyle(place).color;
  };
  const pale = (name: string): string => color(name).replace(/^rgb\((.*)\)$/, "rgba($1, 0.13)");
  const font = `12px ${getComputedStyle(document.body).fontFamily}`;
  const axis = { stroke: color("--faint"), grid: { stroke: color("--line"), width: 1 }, ticks: { show: false }, font };
  const drawn = stacked ? [...series].reverse() : series;
  const bars = stacked ? { paths: library.paths.bars!({ size: [0.7, 40] }) } : {};
  return {
    width: place.clientWidth, height: HEIGHT, cursor: { sync: { key: "usage" }, drag: { x: true, y: false }, points: { show: !stacked } }, legend: { show: false },
    scales: { x: { time: false, range: (_plot, from, to) => [Math.min(from, 1) - 0.5, Math.max(to, from + 1) + 0.5] }, y: { range: (_plot, _low, high) => [0, top ?? (high > 0 ? high * 1.08 : 1)] } },
    axes: [
      { ...axis, size: 30, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000], values: (_plot, values) => values.map((value) => (Number.isInteger(value) && value > 0 ? String(value) : "")) },
      { ...axis, size: 54, values: (_plot, values) => values.map(format) },
    ],
    series: [{}, ...drawn.map((one) => ({
      stroke: color(one.color), width: stacked ? 0 : 2, fill: stacked ? color(one.color) : pale(one.color), points: { show: points && !stacked, size: 6, fill: color(one.color) }, ...bars,
    }))],
    hooks: { setCursor: [(plot) => onCursor(plot.cursor.idx ?? null)] },
  };
}
