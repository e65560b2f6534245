// The line of facts of a session: its state, and what it cost, took and decided. Each leads to its details.

import type { Facts } from "../state/facts.ts";
import { dollars, duration, tokens } from "../state/format.ts";
import type { OpenSession } from "../store.ts";
import { href, type Tab } from "../route.ts";

export function FactLine({ session, facts }: { session: OpenSession; facts: Facts }) {
  const { state } = session;
  const denied = state.decisions.filter((decision) => !decision.allowed).length;
  const last = state.context[state.context.length - 1];
  const calls = facts.models.reduce((sum, one) => sum + one.calls, 0);
  const cached = facts.input > 0 ? Math.round((facts.cacheRead / facts.input) * 100) : 0;
  const slowest = facts.slowest && facts.slowest.totalMs > 0 ? facts.slowest : null;
  const people = [...new Set(state.decisions.map((decision) => decision.by.replace(/, .*| could.*/, "")))];
  const parts = ([["model", facts.modelMs], ["tools", facts.toolMs], ["waiting for you", facts.waitMs]] as const).filter(([, ms]) => ms > 0).map(([part, ms]) => `${part} ${duration(ms)}`);
  return (
    <div class="facts" role="group" aria-label="Facts about this session" tabIndex={0}>
      <Status session={session} />
      {state.runs.length > 0 && !state.working && state.questions.length === 0 && !facts.stopOk && <Fact name="Why it stopped" value={facts.stop} bad />}
      {facts.runMs > 0 && <Fact name="Time" value={duration(facts.runMs)} detail={parts.length > 0 ? ` (${parts.join(", ")})` : ""} more={slowest ? `slowest tool: ${slowest.tool}, ${duration(slowest.totalMs)}` : ""} to="timeline" id={state.id} />}
      {calls > 0 && <Fact name="Cost" value={facts.costUsd === null ? "no known price" : dollars(facts.costUsd)} more={`${calls} model ${calls === 1 ? "call" : "calls"}`} to="usage" id={state.id} />}
      {facts.input + facts.output > 0 && <Fact name="Tokens" value={`${tokens(facts.input)} in, ${tokens(facts.output)} out`} more={`${cached}% from the cache`} to="usage" id={state.id} />}
      {last && <Fact name="Context" value={`context ${Math.round((last.tokens / last.limit) * 100)}%`} to="usage" id={state.id} />}
      {state.decisions.length > 0 && <Fact name="Decisions" value={`${state.decisions.length - denied} approved${denied ? `, ${denied} denied` : ""}`} more={`by ${people.join(" and ")}`} bad={denied > 0} to="decisions" id={state.id} />}
      {state.runs.length > 0 && !state.working && state.questions.length === 0 && facts.stopOk && <Fact name="Why it stopped" value={facts.stop} />}
      <span class="where">{[state.folder, state.branch].filter(Boolean).join(" · ")}</span>
    </div>
  );
}

function Fact({ name, value, detail = "", more = "", to = null, id = "", bad = false }: { name: string; value: string; detail?: string; more?: string; to?: Tab | null; id?: string; bad?: boolean }) {
  const title = `${name}: ${value}${detail}${more ? `; ${more}` : ""}`;
  const shown = <><span class="hidden">{name}: </span>{value}{detail && <span class="fact-detail">{detail}</span>}{more && <span class="hidden">; {more}</span>}</>;
  return to
    ? <a class={bad ? "fact bad" : "fact"} href={href({ view: "session", id, tab: to, at: null })} title={title}>{shown}</a>
    : <span class={bad ? "fact bad" : "fact"} title={title}>{shown}</span>;
}

function Status({ session }: { session: OpenSession }) {
  const { state, status } = session;
  if (status === "loading") return <span class="pill">loading</span>;
  if (state.questions.length > 0) return <span class="pill asks">asks you</span>;
  if (state.working) return <span class="pill working">working</span>;
  return <span class={`pill ${status}`}>{status === "live" ? "ready" : status === "elsewhere" ? "open in another process" : "stored"}</span>;
}
