// The runs of a session as the server counts them, up to date while it works.

import { useEffect, useMemo, useReducer, useState } from "preact/hooks";
import type { RunOfSession } from "../generated/wire.ts";
import type { OpenSession, Store } from "../store.ts";

/** The events of one moment are asked about once. */
const SETTLED_MS = 150;
/** The latest spans, among which those are that have not ended. */
const LATEST = 50;
const FIELDS = { waiting: "waitingMs", model: "modelMs", tools: "toolsMs", other: "otherMs" } as const;

/** Return the time, the tokens and the cost of the runs of a session; nothing from servers that do not count them. */
export function useCounted(store: Store, session: OpenSession): readonly RunOfSession[] {
  const [known, setKnown] = useState<{ runs: RunOfSession[]; at: number }>({ runs: [], at: 0 });
  const [seconds, tick] = useReducer((count: number) => count + 1, 0);
  const { state, status } = session;
  // What the server counts changes with these.
  const phase = [status, state.working, state.questions.length, state.runs.length, state.spans.slice(-LATEST).map((span) => (span.end === null ? span.kind : "")).join("")].join();
  useEffect(() => {
    if (status === "loading" || status === "missing") return;
    let isOver = false;
    const timer = setTimeout(() => {
      store.rpc.call("jumpseat.runs.list", { sessionId: session.id }).then(
        ({ runs }) => { if (!isOver) setKnown({ runs, at: performance.now() }); },
        () => undefined,
      );
    }, SETTLED_MS);
    return () => {
      isOver = true;
      clearTimeout(timer);
    };
  }, [session.id, phase]);
  const running = known.runs.at(-1)?.phase != null;
  useEffect(() => {
    if (!running) return;
    const timer = setInterval(() => tick(undefined as never), 1000);
    return () => clearInterval(timer);
  }, [running]);
  return useMemo(() => {
    const last = known.runs.at(-1);
    if (!last?.phase) return known.runs;
    // Between two answers of the server, the time of what goes on is that of the page; its clock is not compared.
    const field = FIELDS[last.phase];
    return [...known.runs.slice(0, -1), { ...last, [field]: last[field] + Math.round(performance.now() - known.at) }];
  }, [known, seconds]);
}
