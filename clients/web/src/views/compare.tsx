// Two sessions side by side: their facts and their transcripts, for example of two models on one prompt.

import { useMemo } from "preact/hooks";
import { factsOf, type Facts } from "../state/facts.ts";
import { count, dollars, duration, tokens } from "../state/format.ts";
import { factsOfRuns } from "../state/runs.ts";
import type { SessionState } from "../state/types.ts";
import type { Store } from "../store.ts";
import { go, href } from "../route.ts";
import { Table } from "./common.tsx";
import { useCounted } from "./counted.ts";
import { titleOf } from "./list.tsx";
import { RowView } from "./rows.tsx";
import { VirtualList } from "./virtual.tsx";

export function Compare({ store, left, right }: { store: Store; left: string; right: string | null }) {
  const one = useSide(store, left);
  const other = right ? useSide(store, right) : null;
  return (
    <main class="main" id="main">
      <header class="session-head"><div class="session-name"><h1>Compare two sessions</h1></div></header>
      <div class="compare-choice">
        <Choice store={store} label="Left" value={left} onChange={(id) => go({ view: "compare", left: id, right })} />
        <Choice store={store} label="Right" value={right ?? ""} onChange={(id) => go({ view: "compare", left, right: id })} />
      </div>
      {other && (
        <Table label="Facts of both sessions" class="compare-facts">
          <caption class="hidden">Facts of both sessions</caption>
          <thead><tr><th scope="col">Fact</th><th scope="col">Left</th><th scope="col">Right</th><th scope="col">Difference</th></tr></thead>
          <tbody>{FACTS.map(([name, read, show]) => {
            const [before, after] = [read(one.facts, one.state), read(other.facts, other.state)];
            return <tr key={name}><th scope="row">{name}</th><td>{show(before)}</td><td>{show(after)}</td><td>{ratio(before, after)}</td></tr>;
          })}</tbody>
        </Table>
      )}
      <div class="compare">
        {[one, other].map((side, index) => side
          ? <section key={side.state.id} aria-label={index === 0 ? "Left session" : "Right session"}>
              <h2><a href={href({ view: "session", id: side.state.id, tab: "transcript", at: null })}>{side.state.title || side.state.id}</a></h2>
              <p class="faint">{[side.facts.models.map((model) => model.model).join(", ") || side.state.model, side.facts.stop].filter(Boolean).join(" · ")}</p>
              <VirtualList id={side.state.id} class="transcript" label={index === 0 ? "Left transcript" : "Right transcript"} role="feed" count={side.state.rows.length} estimate={90} keyOf={(at) => side.state.rows[at]!.key} render={(at) => <RowView row={side.state.rows[at]!} state={side.state} actions={null} />} />
            </section>
          : <section key="none" class="empty"><p class="faint">Choose a second session.</p></section>)}
      </div>
    </main>
  );
}

function useSide(store: Store, id: string): { state: SessionState; facts: Facts } {
  const session = store.open(id).value;
  const description = store.descriptions.value.get(id);
  const counted = useCounted(store, session);
  const facts = useMemo(() => factsOf(session.state, description?.usage ?? null, factsOfRuns(session.state, counted)), [session.state, description, counted]);
  return { state: session.state, facts };
}

type Fact = [string, (facts: Facts, state: SessionState) => number | null, (value: number | null) => string];
const FACTS: Fact[] = [
  ["Cost", (facts) => facts.costUsd, dollars],
  ["Input tokens", (facts) => facts.input, (value) => tokens(value ?? 0)],
  ["Output tokens", (facts) => facts.output, (value) => tokens(value ?? 0)],
  ["From the cache", (facts) => facts.cacheRead, (value) => tokens(value ?? 0)],
  ["Time", (facts) => facts.runMs, (value) => duration(value ?? 0)],
  ["Time of the model", (facts) => facts.modelMs, (value) => duration(value ?? 0)],
  ["Time in tools", (facts) => facts.toolMs, (value) => duration(value ?? 0)],
  ["Tool calls", (facts) => facts.tools.reduce((sum, tool) => sum + tool.calls, 0), (value) => count(value ?? 0, "call")],
  ["Prompts", (_facts, state) => state.runs.length, (value) => String(value ?? 0)],
];

function ratio(before: number | null, after: number | null): string {
  if (before === null || after === null || before === 0) return "";
  const percent = Math.round((after / before - 1) * 100);
  return percent === 0 ? "the same" : `${percent > 0 ? "+" : "−"}${Math.abs(percent)}%`;
}

function Choice({ store, label, value, onChange }: { store: Store; label: string; value: string; onChange: (id: string) => void }) {
  return (
    <label class="field">{label}
      <select value={value} onChange={(event) => event.currentTarget.value && onChange(event.currentTarget.value)}>
        <option value="">Choose…</option>
        {store.sessions.value.slice(0, 300).map((session) => <option key={session.sessionId} value={session.sessionId}>{titleOf(session)} ({store.descriptions.value.get(session.sessionId)?.model ?? session.sessionId.slice(0, 8)})</option>)}
      </select>
    </label>
  );
}
