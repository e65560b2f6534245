// The strip of facts above a session: what it cost, what was slow, what was approved, and why it stopped.

import type { Facts } from "../state/facts.ts";
import { count, dollars, duration, tokens } from "../state/format.ts";
import type { SessionState } from "../state/types.ts";
import { href } from "../route.ts";

export function FactStrip({ state, facts }: { state: SessionState; facts: Facts }) {
  const allowed = state.decisions.filter((decision) => decision.allowed).length;
  const denied = state.decisions.length - allowed;
  const cached = facts.input > 0 ? Math.round((facts.cacheRead / facts.input) * 100) : null;
  const people = [...new Set(state.decisions.map((decision) => decision.by.replace(/, .*| could.*/, "")))];
  const last = state.context[state.context.length - 1];
  const slowest = facts.slowest && facts.slowest.totalMs > 0 ? facts.slowest : null;
  const to = (tab: "timeline" | "usage" | "decisions"): string => href({ view: "session", id: state.id, tab, at: null });
  return (
    <dl class="facts" aria-label="Facts about this session">
      <Fact name="Cost" value={dollars(facts.costUsd)} more={facts.costUsd === null ? "no known price" : count(facts.models.reduce((sum, one) => sum + one.calls, 0), "model call")} link={to("usage")} />
      <Fact name="Tokens" value={`${tokens(facts.input)} in, ${tokens(facts.output)} out`} more={[cached !== null ? `${cached}% from the cache` : "", last ? `context ${Math.round((last.tokens / last.limit) * 100)}% full` : ""].filter(Boolean).join(", ")} link={to("usage")} />
      <Fact name="Time" value={duration(facts.runMs)} more={`model ${duration(facts.modelMs)}, tools ${duration(facts.toolMs)}${facts.waitMs ? `, waiting ${duration(facts.waitMs)}` : ""}`} link={to("timeline")} />
      <Fact name="Slowest tool" value={slowest ? slowest.tool : "none"} more={slowest ? `${duration(slowest.totalMs)} in ${count(slowest.calls, "call")}` : "no tool took time"} link={to("timeline")} />
      <Fact name="Approvals" value={state.decisions.length === 0 ? "none asked" : `${allowed} approved${denied ? `, ${denied} denied` : ""}`} more={people.length > 0 ? `by ${people.join(" and ")}` : "nothing needed one"} link={to("decisions")} />
      <Fact name={state.working || state.questions.length > 0 ? "Now" : "Why it stopped"} value={facts.stop} bad={!facts.stopOk && !state.working} more="" link={null} />
    </dl>
  );
}

function Fact({ name, value, more, link, bad = false }: { name: string; value: string; more: string; link: string | null; bad?: boolean }) {
  return (
    <div class={bad ? "fact bad" : "fact"}>
      <dt>{link ? <a href={link}>{name}</a> : name}</dt>
      <dd title={value}>{value}</dd>
      {more && <dd class="faint">{more}</dd>}
    </div>
  );
}
