// The transcript of a session: its runs one below the other, each with its prompt as a head that stays in sight.

import { useEffect, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { isHead, itemsOf, type Item, type RunFacts } from "../state/runs.ts";
import type { Row, SessionState } from "../state/types.ts";
import type { OpenSession } from "../store.ts";
import { RowView, RunFoot, Steps, type RowActions } from "./rows.tsx";
import { VirtualList } from "./virtual.tsx";

/** The time in which a list has scrolled to a row, in milliseconds. */
const JUMP_MS = 300;

interface Props {
  session: OpenSession;
  runs: readonly RunFacts[];
  at: string | null;
  actions: RowActions;
}

export function Transcript({ session, runs, at, actions }: Props) {
  const { state } = session;
  const items = useMemo(() => itemsOf(state), [state.rows, state.agents]);
  const frame = useRef<HTMLDivElement>(null);
  const target = at === null ? null : items.findIndex((item) => holds(item, at, state));
  const [jump, setJump] = useState<{ to: number; attempt: number } | null>(null);
  const jumpedAt = useRef(0);
  const first = useFirst(frame, items, () => {
    if (performance.now() - jumpedAt.current > JUMP_MS) jumpedAt.current = 0;
  });
  // Its own prompt is the head of a run while it is in sight.
  const head = first === null || isPrompt(items[first]) ? -1 : items[first]?.run ?? -1;
  useEffect(() => setJump(null), [at]);

  const go = (by: 1 | -1): void => {
    const heads = items.flatMap((item, index) => (isPrompt(item) ? [index] : []));
    // The last heads cannot be brought to the top: the keys go on from them, until the person scrolls.
    const now = jumpedAt.current > 0 && jump ? jump.to : first ?? 0;
    const next = by === 1 ? heads.find((index) => index > now) : heads.findLast((index) => index < now);
    if (next !== undefined) jumpTo(next);
  };
  const jumpTo = (to: number): void => {
    jumpedAt.current = performance.now();
    setJump({ to, attempt: (jump?.attempt ?? 0) + 1 });
  };
  useEffect(() => {
    const key = (event: KeyboardEvent): void => {
      const typing = event.target instanceof HTMLElement && event.target.closest("input, textarea, select, dialog");
      if (typing || event.ctrlKey || event.metaKey || event.altKey || (event.key !== "j" && event.key !== "k")) return;
      event.preventDefault();
      go(event.key === "j" ? 1 : -1);
    };
    addEventListener("keydown", key);
    return () => removeEventListener("keydown", key);
  });
  useEffect(() => {
    if (jump === null) return;
    // The rows are there after they were drawn, and their heights known after that.
    const timer = setTimeout(() => frame.current?.querySelector<HTMLElement>(`[data-index="${jump.to}"] h2`)?.focus({ preventScroll: true }), 60);
    return () => clearTimeout(timer);
  }, [jump]);

  if (items.length === 0) return <div class="page empty-session"><p class="faint">{session.status === "loading" ? "Loading…" : "Nothing has happened in this session yet."}</p></div>;
  const wanted = jump?.to ?? target;
  return (
    <div class="runs" ref={frame}>
      {head >= 0 && <StuckHead state={state} run={head} onUp={() => jumpTo(items.findIndex((item) => item.run === head && isPrompt(item)))} />}
      <VirtualList
        id={session.id} class="transcript" label="Transcript" role="feed" count={items.length} estimate={60} follow target={wanted} align={jump !== null ? "start" : "center"} attempt={jump?.attempt ?? 0}
        keyOf={(index) => items[index]!.key} dependsOn={(index) => itemDependsOn(items[index]!, state, runs, index === target)}
        render={(index) => <ItemView item={items[index]!} state={state} runs={runs} actions={actions} isTarget={index === target} />}
      />
    </div>
  );
}

function ItemView({ item, state, runs, actions, isTarget }: { item: Item; state: SessionState; runs: readonly RunFacts[]; actions: RowActions; isTarget: boolean }) {
  const name = isTarget ? "target" : undefined;
  switch (item.kind) {
    case "row": return <div class={name}><RowView row={item.row} state={state} actions={actions} /></div>;
    case "steps": return <div class={name}><Steps id={item.key} rows={item.rows} state={state} opens={isTarget} /></div>;
    case "foot": return <RunFoot state={state} run={item.run} facts={runs[item.run]} rows={state.rows.slice(item.from, item.to)} />;
  }
}

/** The prompt of a run, in one line, while the list shows a later part of the run. */
function StuckHead({ state, run, onUp }: { state: SessionState; run: number; onUp: () => void }) {
  const prompt = state.runs[run]?.prompt ?? "";
  return <button type="button" class="stuck-head" onClick={onUp} title="To the beginning of this run (k)"><span class="faint">{run + 1}/{state.runs.length}</span> <bdi>{prompt.replace(/\s+/g, " ").slice(0, 200)}</bdi></button>;
}

function isPrompt(item: Item | undefined): boolean {
  return item?.kind === "row" && isHead(item.row);
}

function holds(item: Item, at: string, state: SessionState): boolean {
  const fits = (row: Row): boolean => row.key === at || row.eventId === at || (row.kind === "call" && row.agentId !== null && (state.agents[row.agentId]?.rows.some((inner) => inner.key === at) ?? false));
  return item.kind === "row" ? fits(item.row) : item.kind === "steps" ? item.rows.some(fits) : false;
}

/** Return the index of the first item in sight; null before there is one. */
function useFirst(frame: { current: HTMLDivElement | null }, items: readonly Item[], onScroll: () => void): number | null {
  const [first, setFirst] = useState<number | null>(null);
  const look = (): void => {
    const box = frame.current?.querySelector(".transcript");
    if (!box) return;
    const top = box.getBoundingClientRect().top + 1;
    for (const item of box.querySelectorAll<HTMLElement>("[data-index]")) {
      if (item.getBoundingClientRect().bottom <= top) continue;
      setFirst(Number(item.dataset["index"]));
      return;
    }
  };
  useLayoutEffect(look, [items]);
  useEffect(() => {
    const box = frame.current;
    let asked = 0;
    // After the list has noted that it is no more at its end: otherwise drawing would bring it back there.
    const scrolled = (): void => {
      onScroll();
      cancelAnimationFrame(asked);
      asked = requestAnimationFrame(look);
    };
    // Scrolling does not bubble.
    box?.addEventListener("scroll", scrolled, true);
    // The list may have scrolled to its end before.
    asked = requestAnimationFrame(look);
    return () => {
      cancelAnimationFrame(asked);
      box?.removeEventListener("scroll", scrolled, true);
    };
  }, [items.length === 0]);
  return first;
}

/** What an item shows. A call that runs has a growing duration, and a sub-agent rows of its own. */
function itemDependsOn(item: Item, state: SessionState, runs: readonly RunFacts[], isTarget: boolean): readonly unknown[] {
  if (item.kind === "foot") return [item.to - item.from, state.runs[item.run], state.working, state.changesVersion, ...Object.values(runs[item.run] ?? {})];
  if (item.kind === "steps") return [item.rows.length, isTarget, state.folder, ...item.rows];
  const { row } = item;
  const changes = row.kind === "call" && (row.agentId !== null || (row.start !== null && row.end === null));
  return [row, isTarget, state.folder, changes ? state : null];
}
