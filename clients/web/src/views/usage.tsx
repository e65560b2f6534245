// Plots of the model calls: tokens, the cache, the cost and how full the context is; and the sums by model.

import { useEffect, useMemo, useRef } from "preact/hooks";
import { onSchemeChange } from "../host.ts";
import uPlot from "uplot";
import type { Facts } from "../state/facts.ts";
import { clock, count, dollars, duration, tokens } from "../state/format.ts";
import type { SessionState, Usage } from "../state/types.ts";
import { Table } from "./common.tsx";

export function UsageView({ state, facts, live }: { state: SessionState; facts: Facts; live: boolean }) {
  const main = useMemo(() => state.usage.filter((call) => call.agentId === null), [state.usage]);
  return (
    <div class="page usage" tabIndex={0} role="region" aria-label="Usage">
      <Sums facts={facts} />
      {main.length > 0 ? <Plots calls={state.usage} main={main} state={state} /> : (
        <p class="faint">{facts.models.length > 0
          ? "The usage of each call is not in the log of a session, only the sums: the plots show the calls that the server has made since it opened the session."
          : live ? "No model was called yet." : "No usage is stored for this session."}</p>
      )}
      {state.usage.length > 0 && <Calls calls={state.usage} />}
    </div>
  );
}

function Sums({ facts }: { facts: Facts }) {
  if (facts.models.length === 0) return null;
  return (
    <Table label="Usage by model">
      <caption>Usage by model</caption>
      <thead><tr><th scope="col">Model</th><th scope="col">Calls</th><th scope="col">Input</th><th scope="col">From the cache</th><th scope="col">Output</th><th scope="col">Cost</th></tr></thead>
      <tbody>{facts.models.map((one) => (
        <tr key={one.model}><th scope="row">{one.model}</th><td>{one.calls}</td><td>{tokens(one.input)}</td><td>{tokens(one.cacheRead)}{one.input > 0 ? ` (${Math.round((one.cacheRead / one.input) * 100)}%)` : ""}</td><td>{tokens(one.output)}</td><td>{dollars(one.costUsd)}</td></tr>
      ))}</tbody>
    </Table>
  );
}

function Calls({ calls }: { calls: Usage[] }) {
  return (
    <details class="all-calls">
      <summary>All {count(calls.length, "model call")} as a table</summary>
      <Table label="All model calls">
        <thead><tr><th scope="col">#</th><th scope="col">Time</th><th scope="col">Model</th><th scope="col">Input</th><th scope="col">Cached</th><th scope="col">Output</th><th scope="col">First token</th><th scope="col">Duration</th><th scope="col">Ended by</th><th scope="col">Cost</th></tr></thead>
        <tbody>{calls.map((call, at) => (
          <tr key={at}><td>{at + 1}</td><td>{clock(call.time)}</td><td>{call.model}</td><td>{tokens(call.input)}</td><td>{tokens(call.cacheRead)}</td><td>{tokens(call.output)}</td><td>{call.firstMs === null ? "" : duration(call.firstMs)}</td><td>{duration(call.durationMs)}</td><td>{call.finish ?? ""}</td><td>{dollars(call.costUsd)}</td></tr>
        ))}</tbody>
      </Table>
    </details>
  );
}

function Plots({ calls, main, state }: { calls: Usage[]; main: Usage[]; state: SessionState }) {
  const number = calls.map((_, at) => at + 1);
  let cost = 0;
  const costs = calls.map((call) => (cost += call.costUsd ?? 0));
  const last = state.context[state.context.length - 1];
  const known = calls.some((call) => call.costUsd !== null);
  void main;
  return (
    <div class="plots">
      <Plot title="Tokens of each call" about={`${count(calls.length, "call")}; the largest input has ${tokens(Math.max(...calls.map((call) => call.input)))} tokens`} x={number}
        series={[
          { label: "input", color: "--model", values: calls.map((call) => call.input) },
          { label: "from the cache", color: "--tool", values: calls.map((call) => call.cacheRead) },
          { label: "output", color: "--agent", values: calls.map((call) => call.output) },
        ]} format={tokens} />
      <Plot title="Share of the input from the cache" about={`At the last call: ${percent(share(calls[calls.length - 1]!))}`} x={number}
        series={[{ label: "from the cache", color: "--tool", values: calls.map(share) }]} format={percent} top={1} />
      {known && <Plot title="Cost so far" about={`${dollars(cost)} in all`} x={number} series={[{ label: "cost", color: "--wait", values: costs }]} format={dollars} />}
      {last && (
        <Plot title="Context" about={`${percent(last.tokens / last.limit)} of ${tokens(last.limit)} tokens are used`} x={state.context.map((_, at) => at + 1)}
          series={[{ label: "of the context window", color: "--model", values: state.context.map((one) => one.tokens / one.limit) }]} format={percent} top={1} />
      )}
    </div>
  );
}

function share(call: Usage): number {
  return call.input > 0 ? call.cacheRead / call.input : 0;
}

function percent(value: number): string {
  return `${Math.round(value * 100)}%`;
}

interface PlotProps {
  title: string;
  about: string;
  x: number[];
  series: { label: string; color: string; values: number[] }[];
  format: (value: number) => string;
  top?: number;
}

const HEIGHT = 190;

function Plot({ title, about, x, series, format, top }: PlotProps) {
  const ref = useRef<HTMLDivElement>(null);
  const plot = useRef<uPlot | null>(null);
  const data = [x, ...series.map((one) => one.values)] as uPlot.AlignedData;
  useEffect(() => {
    const place = ref.current!;
    const make = (): void => {
      plot.current?.destroy();
      // As a canvas takes it: a property may hold a function of the scheme.
      const color = (name: string): string => {
        place.style.color = `var(${name})`;
        return getComputedStyle(place).color;
      };
      const pale = (name: string): string => color(name).replace(/^rgb\((.*)\)$/, "rgba($1, 0.13)");
      const axis = { stroke: color("--faint"), grid: { stroke: color("--line"), width: 1 }, ticks: { show: false }, font: "12px system-ui" };
      plot.current = new uPlot({
        width: place.clientWidth, height: HEIGHT, cursor: { sync: { key: "usage" }, drag: { x: true, y: false } }, legend: { live: true },
        scales: { x: { time: false, range: (_plot, from, to) => [Math.min(from, 0.5), Math.max(to, from + 1)] }, y: { range: (_plot, _low, high) => [0, top ?? (high > 0 ? high * 1.08 : 1)] } },
        axes: [{ ...axis, size: 30, incrs: [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000], values: (_plot, values) => values.map((value) => (Number.isInteger(value) ? String(value) : "")) }, { ...axis, size: 54, values: (_plot, values) => values.map(format) }],
        series: [{ label: "call" }, ...series.map((one, at) => ({
          label: one.label, stroke: color(one.color), width: 2, fill: at === 0 ? pale(one.color) : undefined,
          points: { show: x.length < 60, size: 6, fill: color(one.color) }, value: (_plot: uPlot, value: number | null) => (value === null ? "" : format(value)),
        }))],
      }, data, place);
    };
    make();
    const resize = new ResizeObserver(() => plot.current?.setSize({ width: place.clientWidth, height: HEIGHT }));
    resize.observe(place);
    const ignore = onSchemeChange(make);
    return () => {
      resize.disconnect();
      ignore();
      plot.current?.destroy();
      plot.current = null;
    };
  }, [series.length]);
  useEffect(() => plot.current?.setData(data), [x.length, ...series.map((one) => one.values[one.values.length - 1])]);
  return (
    <figure class="plot">
      <figcaption><strong>{title}</strong> <span class="faint">{about}</span></figcaption>
      <div ref={ref} role="img" aria-label={`${title}. ${about}.`} />
    </figure>
  );
}
