// The timeline of a run: a strip of sums, an overview to zoom in, and a waterfall of its parts.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Facts } from "../state/facts.ts";
import { count, duration } from "../state/format.ts";
import { barsOf, kindSums, KINDS, merge, ticks, windowOf, zoom, type Bar, type Window } from "../state/timeline.ts";
import type { SessionState } from "../state/types.ts";
import { go } from "../route.ts";
import { Icon } from "./common.tsx";
import { VirtualList } from "./virtual.tsx";

const TICKS = 6;
/** The places in the overview in which something has happened, or not. */
const COLUMNS = 600;
const ROW_PX = 28;

export function Timeline({ state, facts }: { state: SessionState; facts: Facts }) {
  const [chosen, setChosen] = useState<number | null | undefined>(undefined);
  const last = state.runs.length - 1;
  const run = chosen === undefined ? Math.max(0, last) : chosen;
  const now = state.changed;
  const bars = useMemo(() => barsOf(state, run), [state, run]);
  const whole = useMemo(() => windowOf(state, run, now), [state, run]);
  const [view, setView] = useState<Window | null>(null);
  useEffect(() => setView(null), [run, state.id]);
  const shown = view && view.from >= whole.from && view.to <= whole.to + 1 ? view : whole;
  const sums = useMemo(() => kindSums(bars, whole, now), [bars, whole]);
  const total = whole.to - whole.from;
  if (bars.length === 0) return <div class="page"><p class="faint">Nothing has run in this session yet.</p></div>;
  const change = (next: Window): void => setView(next.to - next.from >= total - 1 ? null : next);
  const move = (part: number): void => {
    const step = (shown.to - shown.from) * part;
    const from = Math.min(Math.max(whole.from, shown.from + step), whole.to - (shown.to - shown.from));
    change({ from, to: from + shown.to - shown.from });
  };
  return (
    <div
      class="timeline"
      onKeyDown={(event) => {
        if (event.target instanceof HTMLSelectElement) return;
        if (event.key === "+" || event.key === "=") change(zoom(shown, whole, 0.5, 0.5));
        else if (event.key === "-") change(zoom(shown, whole, 2, 0.5));
        else if (event.key === "0") setView(null);
        else if (event.key === "ArrowLeft" && view) move(-0.2);
        else if (event.key === "ArrowRight" && view) move(0.2);
        else return;
        event.preventDefault();
      }}
    >
      <div class="timeline-head">
        <label>Run <select value={run === null ? "all" : String(run)} onChange={(event) => setChosen(event.currentTarget.value === "all" ? null : Number(event.currentTarget.value))}>
          {state.runs.map((one) => <option key={one.index} value={one.index}>{one.index + 1}: {one.prompt.replace(/\s+/g, " ").slice(0, 60)} ({duration((one.end ?? now) - one.start)})</option>)}
          {state.runs.length > 1 && <option value="all">All {state.runs.length} runs</option>}
        </select></label>
        <span class="grow" />
        <span class="buttons" role="group" aria-label="Zoom">
          <button type="button" aria-label="Zoom out" title="Zoom out (-)" onClick={() => change(zoom(shown, whole, 2, 0.5))}>−</button>
          <button type="button" aria-label="Zoom in" title="Zoom in (+)" onClick={() => change(zoom(shown, whole, 0.5, 0.5))}>+</button>
          <button type="button" disabled={!view} title="All of the run (0)" onClick={() => setView(null)}>Fit</button>
        </span>
      </div>
      <div class="sum-bars" aria-hidden="true">{sums.map((one) => <span key={one.kind} class={`kind-${one.kind}`} style={{ flexGrow: String(one.ms / total) }} />)}</div>
      <ul class="sums" aria-label={`Where the ${duration(total)} went`}>
        {sums.map((one) => <li key={one.kind}><i class={`swatch kind-${one.kind}`} />{KINDS[one.kind]} <b>{duration(one.ms)}</b> <span class="faint">{Math.round((one.ms / total) * 100)}%</span></li>)}
      </ul>
      <Overview bars={bars} whole={whole} shown={shown} now={now} onZoom={change} />
      <Waterfall state={state} bars={bars} shown={shown} whole={whole} now={now} onZoom={change} />
      <details class="slowest">
        <summary><Icon name="chevron" size={14} /> Tools of the whole session by their time</summary>
        <table>
          <thead><tr><th scope="col">Tool</th><th scope="col">Calls</th><th scope="col">Failed</th><th scope="col">Time</th><th scope="col">Longest</th></tr></thead>
          <tbody>{facts.tools.map((tool) => (
            <tr key={tool.tool}><td><code>{tool.tool}</code></td><td>{tool.calls}</td><td>{tool.failed}</td><td>{duration(tool.totalMs)}</td>
              <td>{tool.longestKey ? <button type="button" class="link" onClick={() => go({ view: "session", id: state.id, tab: "transcript", at: tool.longestKey })}>{duration(tool.longestMs)}</button> : ""}</td></tr>
          ))}</tbody>
        </table>
      </details>
    </div>
  );
}

interface OverviewProps {
  bars: Bar[];
  whole: Window;
  shown: Window;
  now: number;
  onZoom: (window: Window) => void;
}

/** All of the run in one line; dragging over it zooms in. */
function Overview({ bars, whole, shown, now, onZoom }: OverviewProps) {
  const ref = useRef<HTMLDivElement>(null);
  const [drag, setDrag] = useState<[number, number] | null>(null);
  const total = whole.to - whole.from;
  const place = (event: PointerEvent): number => {
    const box = ref.current!.getBoundingClientRect();
    return Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
  };
  const percent = (time: number): number => ((time - whole.from) / total) * 100;
  const parts = useMemo(() => merge(bars, whole, now, COLUMNS), [bars, whole]);
  const window = drag ? { from: whole.from + Math.min(...drag) * total, to: whole.from + Math.max(...drag) * total } : shown;
  return (
    <div
      class="overview" ref={ref} aria-hidden="true"
      onPointerDown={(event) => { event.currentTarget.setPointerCapture(event.pointerId); const at = place(event); setDrag([at, at]); }}
      onPointerMove={(event) => { if (drag) setDrag([drag[0], place(event)]); }}
      onPointerUp={() => {
        if (drag && Math.abs(drag[1] - drag[0]) > 0.005) onZoom(window);
        setDrag(null);
      }}
      onDblClick={() => onZoom(whole)}
    >
      {parts.map((part) => (
        <span key={`${part.kind} ${part.from}`} class={`overview-bar kind-${part.kind}`} style={{ left: `${part.from * 100}%`, width: `${(part.to - part.from) * 100}%`, top: `${LANES[part.kind] * 7 + 3}px` }} />
      ))}
      <span class="overview-window" style={{ left: `${percent(window.from)}%`, width: `${percent(window.to) - percent(window.from)}%` }} />
    </div>
  );
}

const LANES = { model: 0, tool: 1, wait: 2, agent: 3, summary: 4 };

function Waterfall({ state, bars, shown, whole, now, onZoom }: OverviewProps & { state: SessionState }) {
  const length = shown.to - shown.from;
  const visible = bars.filter((bar) => (bar.end ?? now) >= shown.from && bar.start <= shown.to);
  const offset = shown.from - whole.from;
  const marks = ticks(length, TICKS).filter((tick) => tick <= length);
  return (
    <div
      class="waterfall"
      onWheel={(event) => {
        if (!event.ctrlKey && !event.metaKey) return;
        event.preventDefault();
        const box = event.currentTarget.querySelector(".ruler-track")!.getBoundingClientRect();
        onZoom(zoom(shown, whole, event.deltaY > 0 ? 1.25 : 0.8, Math.min(1, Math.max(0, (event.clientX - box.left) / box.width))));
      }}
    >
      <div class="ruler" aria-hidden="true">
        <span class="bar-name">{count(visible.length, "part")}</span>
        <span class="ruler-track">{marks.map((tick) => <span key={tick} class="tick" style={{ left: `${(tick / length) * 100}%` }}>{duration(offset + tick)}</span>)}</span>
      </div>
      <VirtualList
        id={`${state.id} ${shown.from}`} class="bars" label="Parts of the run" count={visible.length} estimate={ROW_PX} keyOf={(at) => visible[at]!.key}
        render={(at) => <BarRow bar={visible[at]!} state={state} shown={shown} whole={whole} now={now} />}
      />
    </div>
  );
}

function BarRow({ bar, state, shown, whole, now }: { bar: Bar; state: SessionState; shown: Window; whole: Window; now: number }) {
  const length = shown.to - shown.from;
  const end = bar.end ?? now;
  const ms = end - bar.start;
  const from = Math.max(0, (bar.start - shown.from) / length) * 100;
  const to = Math.min(1, (end - shown.from) / length) * 100;
  const first = bar.firstMs !== null && ms > 0 ? Math.min(1, bar.firstMs / ms) : null;
  const about = `${KINDS[bar.kind].toLowerCase()}${bar.firstMs !== null ? `, first token after ${duration(bar.firstMs)}` : ""}, begins after ${duration(bar.start - whole.from)}${bar.ok ? "" : bar.end === null ? ", goes on" : ", not successful"}`;
  return (
    <button type="button" class="bar-row" title={about} disabled={!bar.rowKey} onClick={() => bar.rowKey && go({ view: "session", id: state.id, tab: "transcript", at: bar.rowKey })}>
      <span class="bar-name" style={{ paddingLeft: `${bar.depth * 14}px` }}><i class={`swatch kind-${bar.kind}`} />{bar.label}</span>{" "}
      <span class="bar-track">
        <span class={`bar kind-${bar.kind} ${bar.ok ? "" : "bad"} ${bar.end === null ? "open" : ""}`} style={{ left: `${from}%`, width: `max(2px, ${to - from}%)` }}>
          {first !== null && <span class="first" style={{ width: `${first * 100}%` }} />}
        </span>
        <span class="bar-time" style={to < 82 ? { left: `calc(${to}% + 6px)` } : { right: `calc(${100 - from}% + 6px)` }}>{duration(ms)}</span>
      </span>
      <span class="hidden">, {about}</span>
    </button>
  );
}
