// Who decided what, by which rule and when, and the approvals that still hold: a part of the log.

import { useEffect, useState } from "preact/hooks";
import { withoutFolder } from "../state/diff.ts";
import { clock, dateTime, duration } from "../state/format.ts";
import type { Verdict } from "../state/log.ts";
import type { OpenSession, Store } from "../store.ts";
import { href } from "../route.ts";
import { VirtualList } from "./virtual.tsx";

const SCOPES: Record<string, string> = { session: "this session", location: "this project" };

export function Decisions({ store, session, verdicts }: { store: Store; session: OpenSession; verdicts: readonly Verdict[] }) {
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
  const revoke = async (id: string): Promise<void> => {
    await store.rpc.call("jumpseat.permissions.revoke", { sessionId: session.id, ids: [id] });
    await read();
  };
  return (
    <>
      {kept.length > 0 && (
        <section class="kept" aria-labelledby="kept-heading">
          <h2 id="kept-heading">Approvals in force</h2>
          <ul>
            {kept.map((one) => (
              <li key={one.id}>
                <span><span class="badge">{SCOPES[one.scope] ?? "everywhere"}</span>{" "}
                  {[...one.rules.map((rule: any) => [rule.kind, rule.argument].filter(Boolean).join(" ")), ...one.hosts, ...one.paths, ...one.commandLines].join(", ")}</span>
                <button type="button" onClick={() => void revoke(one.id)}>Revoke</button>
              </li>
            ))}
          </ul>
        </section>
      )}
      {verdicts.length === 0 ? <div class="page"><p class="faint">{state.decisions.length === 0 ? "Nobody was asked for an approval in this session, and no tool was called." : "No decision has these words."}</p></div> : (
        <VirtualList
          id={`${state.id} decisions`} class="verdicts" label="Decisions" count={verdicts.length} estimate={44} keyOf={(at) => verdicts[at]!.key}
          render={(at) => <VerdictRow one={verdicts[at]!} sessionId={state.id} folder={state.folder} />}
        />
      )}
    </>
  );
}

function VerdictRow({ one, sessionId, folder }: { one: Verdict; sessionId: string; folder: string }) {
  const what = <code>{withoutFolder(one.what, folder)}</code>;
  const after = one.afterMs !== null && one.afterMs > 0 ? `after ${duration(one.afterMs)}` : "";
  return (
    <div class={one.asked ? "verdict" : "verdict unasked"}>
      <time title={dateTime(one.time)}>{clock(one.time)}</time>
      <span class={!one.allowed ? "badge bad" : one.asked ? "badge good" : "badge"}>{!one.allowed ? "denied" : one.asked ? "approved" : "not asked"}</span>
      <span class="verdict-what">{one.callKey ? <a href={href({ view: "session", id: sessionId, tab: "transcript", at: one.callKey })}>{what}</a> : what}{one.agent && <span class="faint"> in {one.agent}</span>}</span>
      <span class="verdict-by">{one.by}{(one.rule || after) && <span class="faint"> {[one.rule, after].filter(Boolean).join(" · ")}</span>}{one.feedback && <span class="faint"> “{one.feedback}”</span>}</span>
    </div>
  );
}
