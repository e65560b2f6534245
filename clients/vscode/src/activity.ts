// What the sessions of the server are doing, as the status item shows it: from their events. Pure.

export interface Activity {
  /** The sessions that work. */
  working: ReadonlySet<string>;
  /** The session of each open question, by the question. */
  questions: ReadonlyMap<string, string>;
}

export const IDLE: Activity = { working: new Set(), questions: new Map() };

const ASKING = /^(permission|user_input|exit_plan_mode|elicitation|auto_mode_switch)\.(requested|completed)$/;

/** Return the activity after an event of a session; the same object if the event changes nothing. */
export function after(activity: Activity, sessionId: string, event: { type: string; agentId?: string | null; data?: any }): Activity {
  const asking = ASKING.exec(event.type);
  if (asking) {
    const id = String(event.data?.requestId);
    if (asking[2] === "requested" && event.data?.resolvedByHook) return activity;
    if (asking[2] === "completed" && !activity.questions.has(id)) return activity;
    const questions = new Map(activity.questions);
    if (asking[2] === "requested") questions.set(id, sessionId);
    else questions.delete(id);
    return { ...activity, questions };
  }
  if (event.agentId) return activity;
  if (event.type === "user.message" || event.type === "assistant.turn_start") {
    return activity.working.has(sessionId) ? activity : { ...activity, working: new Set(activity.working).add(sessionId) };
  }
  if (event.type === "session.idle" || event.type === "session.shutdown") {
    if (!activity.working.has(sessionId) && ![...activity.questions.values()].includes(sessionId)) return activity;
    return {
      working: new Set([...activity.working].filter((one) => one !== sessionId)),
      questions: new Map([...activity.questions].filter(([, of]) => of !== sessionId)),
    };
  }
  return activity;
}
