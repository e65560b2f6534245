// What was approved and denied, by whom and for how long, and the approvals that still hold.

import { useEffect, useState } from "preact/hooks";
import { clock, count, duration } from "../state/format.ts";
import { callsOf } from "../state/facts.ts";
import type { OpenSession, Store } from "../store.ts";
import { href } from "../route.ts";
import { Table } from "./common.tsx";

export function Decisions({ store, session }: { store: Store; session: OpenSession }) {
  const { state } = session;
  const [kept, setKept] = useState<any[]>([]);
  const read = async (): Promise<void> => {
    if (session.status !== "live") return setKept([]);
    try {
      setKept(((await store.rpc.call("jumpseat.permissions.list", { sessionId: session.id })) as any).approvals);
    } catch {
      setKept([]);
    }
  };
  useEffect(() => void read(), [session.id, session.status, state.decisions.length]);
  const asked = new Set(state.decisions.map((decision) => decision.callId));
  const unasked = callsOf(state).filter((call) => !asked.has(call.key));
  return (
    <div class="page" tabIndex={0} role="region" aria-label="Decisions">
      <h2>Decisions</h2>
      {state.decisions.length === 0 ? <p>Nobody was asked for an approval in this session.</p> : (
        <Table label="Table of decisions">
          <thead><tr><th scope="col">Time</th><th scope="col">What</th><th scope="col">Decision</th><th scope="col">By whom</th><th scope="col">After</th></tr></thead>
          <tbody>
            {state.decisions.map((decision) => (
              <tr key={decision.requestId}>
                <td>{clock(decision.time)}</td>
                <td>{decision.callId ? <a href={href({ view: "session", id: state.id, tab: "transcript", at: decision.callId })}><code>{decision.what}</code></a> : <code>{decision.what}</code>}</td>
                <td><span class={decision.allowed ? "badge good" : "badge bad"}>{decision.allowed ? "approved" : "denied"}</span></td>
                <td>{decision.by}{decision.feedback && <div class="faint">“{decision.feedback}”</div>}</td>
                <td>{duration(decision.time - decision.asked)}</td>
              </tr>
            ))}
          </tbody>
        </Table>
      )}
      {unasked.length > 0 && <p class="faint">{count(unasked.length, "call")} ran without a question: the tool needs none, or a rule, an earlier approval or the mode allowed it.</p>}
      {kept.length > 0 && (
        <>
          <h2>Approvals that still hold</h2>
          <ul class="kept">
            {kept.map((one) => (
              <li key={one.id}>
                <span><span class="badge">{one.scope === "session" ? "this session" : one.scope === "location" ? "this project" : "everywhere"}</span>{" "}
                  {[...one.rules.map((rule: any) => [rule.kind, rule.argument].filter(Boolean).join(" ")), ...one.hosts, ...one.paths, ...one.commandLines].join(", ")}</span>
                <button type="button" onClick={async () => { await store.rpc.call("jumpseat.permissions.revoke", { sessionId: session.id, ids: [one.id] }); await read(); }}>Revoke</button>
              </li>
            ))}
          </ul>
        </>
      )}
    </div>
  );
}
