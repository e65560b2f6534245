// The timeline of a session: what took longest, and all runs under one another on one scale, each opened to its bars.

import { useEffect, useMemo, useRef, useState } from "preact/hooks";
import type { Facts } from "../state/facts.ts";
import { count, duration } from "../state/format.ts";
import {
  KINDS, lanesOf, longestOf, merge, placeLabel, sumsOf, ticks, zoom, type Bar, type KindSum, type Lane, type Longest, type Window,
} from "../state/timeline.ts";
import type { SessionState } from "../state/types.ts";
import { go } from "../route.ts";
import { Icon, Table } from "./common.tsx";
import { VirtualList } from "./virtual.tsx";

/** The most marks of the scale, and the pixels that each has at least. */
const TICKS = 6;
/** The room that the label of a mark needs. */
const LABEL_PX = 52;
const TICK_PX = 70;
/** The places of a run that is closed in which something has happened, or not. */
const COLUMNS = 400;
const ROW_PX = 30;
/** A session with at most so many bars is shown with all of them. */
const FEW_BARS = 40;
/** A run that is shorter than this part of the scale gets a scale of its own when it is opened. */
const SHORT = 0.5;
const SHORTEST_DRAG = 0.01;
const TABLE_ROWS = 200;

type Item = { lane: Lane; bar: Bar | null };

export function Timeline({ state, facts }: { state: SessionState; facts: Facts }) {
  const [withWaits, setWithWaits] = useState(false);
  const [toggled, setToggled] = useState<ReadonlySet<number>>(new Set());
  const [view, setView] = useState<Window | null>(null);
  const [target, setTarget] = useState<string | null>(null);
  const [asTable, setAsTable] = useState(false);
  useEffect(() => {
    setView(null);
    setToggled(new Set());
    setTarget(null);
  }, [state.id]);
  const before = useRef<{ id: string; lanes: Lane[] }>({ id: "", lanes: [] });
  const lanes = useMemo(() => {
    const found = lanesOf(state, withWaits, before.current.id === state.id ? before.current.lanes : []);
    before.current = { id: state.id, lanes: found };
    return found;
  }, [state.spans, state.runs, state.decisions, state.working, withWaits]);
  const longest = useMemo(() => longestOf(lanes, state), [lanes]);
  const sums = sumsOf(facts);
  const few = lanes.length < 2 || lanes.reduce((sum, lane) => sum + lane.bars.length, 0) <= FEW_BARS;
  const isOpen = (lane: Lane): boolean => few !== toggled.has(lane.run.index);
  const allOpen = lanes.every(isOpen);
  const items = useMemo(() => lanes.flatMap((lane): Item[] => [{ lane, bar: null }, ...(isOpen(lane) ? lane.bars.map((bar) => ({ lane, bar })) : [])]), [lanes, toggled, few]);
  const whole: Window = { from: 0, to: lanes.reduce((most, lane) => Math.max(most, lane.clock.length), 1) };
  const shown = view ? { from: Math.min(view.from, whole.to), to: Math.min(view.to, whole.to) } : whole;
  if (lanes.length === 0) return <div class="page"><p class="faint">Nothing has run in this session yet.</p></div>;

  const change = (next: Window): void => setView(next.to - next.from >= whole.to - 1 || next.to <= next.from ? null : next);
  const move = (part: number): void => {
    const length = shown.to - shown.from;
    const from = Math.min(Math.max(0, shown.from + length * part), whole.to - length);
    change({ from, to: from + length });
  };
  const toggle = (lane: Lane, open: boolean): void => {
    if (open === isOpen(lane)) return;
    const next = new Set(toggled);
    if (next.has(lane.run.index)) next.delete(lane.run.index);
    else next.add(lane.run.index);
    setToggled(next);
    setTarget(null);
    if (lane.clock.length < whole.to * SHORT) setView(open ? { from: 0, to: lane.clock.length } : null);
  };
  const find = ({ bar, lane }: Longest): void => {
    setAsTable(false);
    toggle(lane, true);
    setView(lane.clock.length < whole.to * SHORT ? { from: 0, to: lane.clock.length } : null);
    setTarget(bar.key);
  };
  const ranks = new Map(longest.map((one, at) => [one.bar.key, at + 1]));
  const index = target === null ? -1 : items.findIndex((item) => item.bar?.key === target);
  return (
    <div
      class="timeline"
      onKeyDown={(event) => {
        const row = event.target instanceof HTMLElement ? event.target.closest<HTMLElement>("[data-item]") : null;
        const item = row ? items[Number(row.dataset["item"])] : undefined;
        if (event.ctrlKey || event.metaKey || event.altKey || event.target instanceof HTMLInputElement) return;
        if (event.key === "+" || event.key === "=") change(zoom(shown, whole, 0.5, 0.5));
        else if (event.key === "-") change(zoom(shown, whole, 2, 0.5));
        else if (event.key === "0") setView(null);
        else if (event.key === "f" && item) change({ from: 0, to: item.lane.clock.length });
        else if (event.shiftKey && (event.key === "ArrowLeft" || event.key === "ArrowRight")) move(event.key === "ArrowLeft" ? -0.2 : 0.2);
        else if (event.key === "ArrowRight" && item && !item.bar) toggle(item.lane, true);
        else if (event.key === "ArrowLeft" && item) toggle(item.lane, false);
        else if ((event.key === "ArrowDown" || event.key === "ArrowUp") && row) step(row, event.key === "ArrowDown" ? 1 : -1);
        else return;
        event.preventDefault();
      }}
    >
      <Summary sums={sums} longest={longest} runs={lanes.length} onFind={find} />
      <div class="lane-tools">
        <span class="faint">{count(lanes.length, "run")}{lanes.length > 1 && <>, <button type="button" class="link" onClick={() => { setToggled(new Set(few === allOpen ? lanes.map((lane) => lane.run.index) : [])); setView(null); }}>{allOpen ? "close all" : "open all"}</button></>}</span>
        <span class="grow" />
        <label class="check"><input type="checkbox" checked={withWaits} onChange={(event) => { setWithWaits(event.currentTarget.checked); setView(null); }} /> waits in full</label>
        <button type="button" aria-pressed={asTable} onClick={() => setAsTable(!asTable)}>Table</button>
        <span class="buttons" role="group" aria-label="Zoom">
          <button type="button" aria-label="Zoom out" title="Zoom out (-)" onClick={() => change(zoom(shown, whole, 2, 0.5))}>−</button>
          <button type="button" aria-label="Zoom in" title="Zoom in (+)" onClick={() => change(zoom(shown, whole, 0.5, 0.5))}>+</button>
          <button type="button" disabled={!view} title="The scale of the longest run (0)" onClick={() => setView(null)}>Fit</button>
        </span>
      </div>
      {asTable ? <PartsTable lanes={lanes} state={state} ranks={ranks} /> : (
        <Lanes state={state} items={items} shown={shown} whole={whole} ranks={ranks} target={index >= 0 ? index : null} isOpen={isOpen} onToggle={toggle} onZoom={change}
          id={`${state.id} ${few} ${[...toggled].join()}`} />
      )}
      <ToolSums state={state} facts={facts} />
    </div>
  );
}

/** Move the focus by rows. Those beyond the visible ones are drawn as soon as the list scrolls. */
function step(row: HTMLElement, by: number): void {
  const next = row.closest(".virtual")?.querySelector<HTMLElement>(`[data-item="${Number(row.dataset["item"]) + by}"]`);
  next?.focus();
  next?.scrollIntoView({ block: "nearest" });
}

function Summary({ sums, longest, runs, onFind }: { sums: KindSum[]; longest: Longest[]; runs: number; onFind: (one: Longest) => void }) {
  const total = Math.max(1, sums.reduce((sum, one) => sum + one.ms, 0));
  return (
    <div class="time-summary">
      <section aria-label={`Where the ${duration(total)} went`}>
        <div class="sum-bars" aria-hidden="true">{sums.map((one) => <span key={one.kind} class={`kind-${one.kind}`} style={{ flexGrow: String(one.ms / total) }} />)}</div>
        <ul class="sums">
          {sums.map((one) => <li key={one.kind}><i class={`swatch kind-${one.kind}`} />{KINDS[one.kind]} <b>{duration(one.ms)}</b> <span class="faint">{Math.round((one.ms / total) * 100)}%</span></li>)}
        </ul>
      </section>
      {longest.length > 0 && (
        <section class="longest" aria-label="What took longest">
          <h2>What took longest</h2>
          <ol>
            {longest.map((one) => (
              <li key={one.bar.key}><button type="button" onClick={() => onFind(one)}>
                <i class={`swatch kind-${one.bar.kind}`} /><b>{duration(one.bar.workMs)}</b>
                <span class="longest-name">{nameOf(one.bar)}{one.bar.kind === "wait" ? ` ${one.bar.label.replace(/^waits /, "")}` : ""}{subjectOf(one.bar) && <> <code>{subjectOf(one.bar)}</code></>}</span>
                <span class="faint longest-why">{[one.why, runs > 1 ? `run ${one.lane.run.index + 1}` : ""].filter(Boolean).join(" · ")}</span>
              </button></li>
            ))}
          </ol>
        </section>
      )}
    </div>
  );
}

function nameOf(bar: Bar): string {
  return bar.kind === "model" ? "model" : bar.kind === "wait" ? "wait" : bar.label;
}

function subjectOf(bar: Bar): string {
  return bar.subject === nameOf(bar) ? "" : bar.subject;
}

interface LanesProps {
  state: SessionState;
  items: Item[];
  shown: Window;
  whole: Window;
  ranks: ReadonlyMap<string, number>;
  target: number | null;
  isOpen: (lane: Lane) => boolean;
  onToggle: (lane: Lane, open: boolean) => void;
  onZoom: (window: Window) => void;
  id: string;
}

function Lanes({ state, items, shown, whole, ranks, target, isOpen, onToggle, onZoom, id }: LanesProps) {
  const track = useRef<HTMLSpanElement>(null);
  const [width, setWidth] = useState(600);
  const [drag, setDrag] = useState<[number, number] | null>(null);
  useEffect(() => {
    const place = track.current!;
    const follow = new ResizeObserver(() => setWidth(place.clientWidth));
    follow.observe(place);
    return () => follow.disconnect();
  }, []);
  const length = shown.to - shown.from;
  const place = (event: MouseEvent): number => {
    const box = track.current!.getBoundingClientRect();
    return Math.min(1, Math.max(0, (event.clientX - box.left) / box.width));
  };
  const chosen = drag ? { from: shown.from + Math.min(...drag) * length, to: shown.from + Math.max(...drag) * length } : null;
  return (
    <div
      class="lanes"
      onWheel={(event) => {
        if (!event.ctrlKey && !event.metaKey) return;
        event.preventDefault();
        onZoom(zoom(shown, whole, event.deltaY > 0 ? 1.25 : 0.8, place(event)));
      }}
    >
      <div class="lane-ruler" aria-hidden="true">
        <span class="lane-name">time since the prompt</span>
        <span
          class="lane-track" ref={track} title="Drag to zoom in"
          onPointerDown={(event) => { event.currentTarget.setPointerCapture(event.pointerId); setDrag([place(event), place(event)]); }}
          onPointerMove={(event) => { if (drag) setDrag([drag[0], place(event)]); }}
          onPointerUp={() => {
            if (chosen && chosen.to - chosen.from > length * SHORTEST_DRAG) onZoom(chosen);
            setDrag(null);
          }}
          onDblClick={() => onZoom(whole)}
        >
          {marks(shown, Math.min(TICKS, Math.max(1, Math.floor(width / TICK_PX)))).map((tick) => <span key={tick} class="tick" style={{ left: `${((tick - shown.from) / length) * 100}%` }}>{(1 - (tick - shown.from) / length) * width > LABEL_PX && duration(tick)}</span>)}
          {drag && <span class="lane-drag" style={{ left: `${Math.min(...drag) * 100}%`, width: `${Math.abs(drag[1] - drag[0]) * 100}%` }} />}
        </span>
      </div>
      <VirtualList
        id={id} class="lane-list" label="Runs and their parts" count={items.length} estimate={ROW_PX} target={target} keyOf={(at) => keyOf(items[at]!)}
        render={(at) => {
          const { lane, bar } = items[at]!;
          return bar
            ? <BarRow at={at} bar={bar} lane={lane} state={state} shown={shown} width={width} rank={ranks.get(bar.key) ?? null} chosen={at === target} />
            : <RunRow at={at} lane={lane} state={state} shown={shown} width={width} open={isOpen(lane)} onToggle={onToggle} />;
        }}
      />
    </div>
  );
}

function keyOf({ lane, bar }: Item): string {
  return bar ? `${lane.run.index} ${bar.key}` : `run ${lane.run.index}`;
}

function marks(shown: Window, most: number): number[] {
  const offset = shown.from;
  const step = ticks(shown.to - offset, most)[1] ?? shown.to;
  const first = Math.ceil(offset / step) * step;
  return Array.from({ length: Math.max(0, Math.floor((shown.to - first) / step) + 1) }, (_, at) => first + at * step);
}

interface RowProps {
  at: number;
  lane: Lane;
  state: SessionState;
  shown: Window;
  /** Of the track, in pixels. */
  width: number;
}

function RunRow({ at, lane, state, shown, width, open, onToggle }: RowProps & { open: boolean; onToggle: LanesProps["onToggle"] }) {
  const now = state.changed;
  const { run } = lane;
  const parts = useMemo(() => (open ? [] : merge(lane.bars, lane.clock, shown, now, COLUMNS)), [open, lane, shown.from, shown.to]);
  const end = Math.min(1, (lane.clock.length - shown.from) / (shown.to - shown.from));
  const ms = (run.end ?? now) - run.start;
  const waited = lane.waitedMs;
  const text = [duration(ms), waited > 0 ? `${duration(waited)} of waiting` : "", run.end === null ? "running" : run.ok ? "" : "failed"].filter(Boolean).join(", ");
  const prompt = run.prompt.replace(/\s+/g, " ").slice(0, 200);
  return (
    <button type="button" class={open ? "lane run open" : "lane run"} data-item={at} aria-expanded={open} onClick={() => onToggle(lane, !open)} title={prompt}>
      <span class="lane-name"><Icon name="chevron" size={12} /><b>{run.index + 1}</b> <span class="lane-prompt">{prompt || "(no prompt)"}</span></span>{" "}
      <span class="lane-track" aria-hidden="true">
        {end > 0 && <span class="lane-extent" style={{ width: `${end * 100}%` }} />}
        {parts.map((part) => <span key={`${part.kind} ${part.from}`} class={`lane-part kind-${part.kind}`} style={{ left: `${part.from * 100}%`, width: `max(${part.kind === "wait" ? 6 : 2}px, ${(part.to - part.from) * 100}%)` }} />)}
        <Label text={text} from={0} to={Math.max(0, end)} width={width} />
      </span>
      <span class="hidden">run {run.index + 1}, {text}, {count(lane.bars.length, "part")}</span>
    </button>
  );
}

function BarRow({ at, bar, lane, state, shown, width, rank, chosen }: RowProps & { bar: Bar; rank: number | null; chosen: boolean }) {
  const length = shown.to - shown.from;
  const now = state.changed;
  const [start, end] = [lane.clock.at(bar.start), lane.clock.at(bar.end ?? now)];
  const from = Math.min(1, Math.max(0, (start - shown.from) / length));
  const to = Math.min(1, Math.max(0, (end - shown.from) / length));
  const outside = end < shown.from || start > shown.to;
  const ms = bar.kind === "agent" ? (bar.end ?? now) - bar.start : bar.workMs;
  const first = bar.firstMs !== null && ms > 0 ? Math.min(1, bar.firstMs / ms) : null;
  const text = [bar.kind === "wait" ? "waited" : bar.subject, bar.kind === "wait" ? `${duration(ms)}: ${bar.subject || bar.label}` : duration(ms), bar.ok || bar.end === null ? "" : "failed"].filter(Boolean).join(" ");
  const about = `${KINDS[bar.kind].toLowerCase()}${bar.firstMs !== null ? `, first token after ${duration(bar.firstMs)}` : ""}, begins after ${duration(start)}${bar.ok ? "" : bar.end === null ? ", goes on" : ", not successful"}${rank ? `, number ${rank} of what took longest` : ""}`;
  return (
    <button type="button" class={`lane part${chosen ? " chosen" : ""}`} data-item={at} title={`${text}\n${about}`} aria-disabled={!bar.rowKey} onClick={() => bar.rowKey && go({ view: "session", id: state.id, tab: "transcript", at: bar.rowKey })}>
      <span class="lane-name" style={{ paddingLeft: `${14 + bar.depth * 12}px` }}><i class={`swatch kind-${bar.kind}`} /><span class="lane-prompt">{nameOf(bar)}</span>{rank && <span class="rank">{rank}</span>}</span>{" "}
      <span class="lane-track" aria-hidden="true">
        {!outside && (
          <span class={`lane-bar kind-${bar.kind}${bar.ok || bar.end === null ? "" : " bad"}${bar.end === null ? " open" : ""}`} style={{ left: `${from * 100}%`, width: `max(${bar.kind === "wait" ? 8 : 3}px, ${(to - from) * 100}%)` }}>
            {first !== null && <span class="first" style={{ width: `${first * 100}%` }} />}
          </span>
        )}
        {!outside && <Label text={text} from={from} to={Math.max(to, from + (bar.kind === "wait" ? 8 : 3) / width)} width={width} on={bar.kind} />}
      </span>
      <span class="hidden">{text}, {about}</span>
    </button>
  );
}

/** The text of a bar: in it, or beside it where it is too short. `on` is the kind of bar whose colour is below the text. */
function Label({ text, from, to, width, on }: { text: string; from: number; to: number; width: number; on?: Bar["kind"] }) {
  const { where, widthPx } = placeLabel(text, from * width, to * width, width);
  const side = where === "left" ? { right: `calc(${(1 - from) * 100}% + 6px)` } : { left: where === "inside" ? `${from * 100}%` : `calc(${to * 100}% + 6px)` };
  return <span class={`lane-label ${where}${where === "inside" && on ? ` on kind-${on}` : ""}`} style={{ ...side, maxWidth: `${Math.max(0, widthPx - 6)}px` }}>{text}</span>;
}

function PartsTable({ lanes, state, ranks }: { lanes: Lane[]; state: SessionState; ranks: ReadonlyMap<string, number> }) {
  const [most, setMost] = useState(TABLE_ROWS);
  const rows = useMemo(() => lanes.flatMap((lane): Item[] => [{ lane, bar: null }, ...lane.bars.map((bar) => ({ lane, bar }))]), [lanes]);
  const now = state.changed;
  return (
    <div class="parts-table">
      <Table label="Table of the timeline">
        <caption class="hidden">All runs and their parts in order</caption>
        <thead><tr><th scope="col">Run</th><th scope="col">Part</th><th scope="col">About</th><th scope="col">Begins after</th><th scope="col">Time</th><th scope="col">Result</th><th scope="col">Longest</th></tr></thead>
        <tbody>{rows.slice(0, most).map(({ lane, bar }) => (bar
          ? <tr key={`${lane.run.index} ${bar.key}`}><td>{lane.run.index + 1}</td><td>{"· ".repeat(bar.depth)}{nameOf(bar)}</td><td><code>{subjectOf(bar)}</code></td><td>{duration(lane.clock.at(bar.start))}</td><td>{duration(bar.workMs)}</td><td>{bar.end === null ? "goes on" : bar.ok ? "" : "failed"}</td><td>{ranks.get(bar.key) ?? ""}</td></tr>
          : <tr key={`run ${lane.run.index}`} class="run"><th scope="row">{lane.run.index + 1}</th><td>prompt</td><td>{lane.run.prompt.replace(/\s+/g, " ").slice(0, 120)}</td><td /><td>{duration((lane.run.end ?? now) - lane.run.start)}</td><td>{lane.run.stop ?? "goes on"}</td><td /></tr>
        ))}</tbody>
      </Table>
      {rows.length > most && <button type="button" onClick={() => setMost(most + TABLE_ROWS)}>Show {Math.min(TABLE_ROWS, rows.length - most)} more of {count(rows.length, "row")}</button>}
    </div>
  );
}

function ToolSums({ state, facts }: { state: SessionState; facts: Facts }) {
  if (facts.tools.length === 0) return null;
  return (
    <details class="slowest">
      <summary><Icon name="chevron" size={14} /> Time by tool</summary>
      <Table label="Time by tool">
        <thead><tr><th scope="col">Tool</th><th scope="col">Calls</th><th scope="col">Failed</th><th scope="col">Time</th><th scope="col">Longest</th></tr></thead>
        <tbody>{facts.tools.map((tool) => (
          <tr key={tool.tool}><td><code>{tool.tool}</code></td><td>{tool.calls}</td><td>{tool.failed}</td><td>{duration(tool.totalMs)}</td>
            <td>{tool.longestKey ? <button type="button" class="link" onClick={() => go({ view: "session", id: state.id, tab: "transcript", at: tool.longestKey })}>{duration(tool.longestMs)}</button> : ""}</td></tr>
        ))}</tbody>
      </Table>
    </details>
  );
}
