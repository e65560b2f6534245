import assert from "node:assert/strict";
import { test } from "node:test";
import { factsOf } from "../src/state/facts.ts";
import { reduce, settle } from "../src/state/reduce.ts";
import { emptySession, type CallRow, type SessionState, type WireEvent } from "../src/state/types.ts";

let number = 0;
function event(type: string, data: any, seconds: number, more: Partial<WireEvent> = {}): WireEvent {
  return { id: `e${++number}`, timestamp: new Date(1_700_000_000_000 + seconds * 1000).toISOString(), type, data, ...more };
}

function callEvents(id: string, tool: string, start: number, end: number, result: any, more: Partial<WireEvent> = {}): WireEvent[] {
  return [
    event("tool.execution_start", { toolCallId: id, toolName: tool, arguments: { command: "make" } }, start, more),
    event("tool.execution_complete", { toolCallId: id, ...result }, end, more),
  ];
}

const PROMPT = event("user.message", { content: "Build it", messageId: "m", delivery: "idle" }, 0);

function call(state: SessionState, id: string): CallRow {
  const row = state.rows.find((one) => one.key === id);
  assert.ok(row?.kind === "call");
  return row;
}

test("the given state stays as it is, and later events share what they do not change", () => {
  const first = reduce(emptySession("s"), [PROMPT, ...callEvents("c1", "bash", 1, 2, { success: true, result: { content: "ok\n<exited with exit code 0>" } })]);
  const rows = first.rows;
  const second = reduce(first, [event("assistant.message", { messageId: "a", content: "Done" }, 3)]);
  assert.equal(first.rows, rows);
  assert.equal(first.rows.length, 2);
  assert.equal(second.rows.length, 3);
  assert.equal(second.rows[0], first.rows[0]);
});

test("deltas grow an answer, which the message replaces", () => {
  const delta = (text: string): WireEvent => event("assistant.message_delta", { messageId: "a", deltaContent: text }, 1, { ephemeral: true });
  let state = reduce(emptySession("s"), [PROMPT, delta("Hel"), delta("lo")]);
  assert.deepEqual(state.rows.map((row) => row.kind === "answer" && [row.text, row.streaming]).slice(1), [["Hello", true]]);
  state = reduce(state, [event("assistant.message", { messageId: "a", content: "Hello!", model: "m" }, 2)]);
  assert.deepEqual(state.rows.map((row) => row.kind === "answer" && [row.text, row.streaming]).slice(1), [["Hello!", false]]);
});

test("a shell call shows its output without the line of its exit code, and fails with it", () => {
  const state = reduce(emptySession("s"), [PROMPT, ...callEvents("c", "bash", 1, 3, { success: true, result: { content: "no rule\n<exited with exit code 2>" } })]);
  const row = call(state, "c");
  assert.deepEqual([row.status, row.exitCode, row.output, row.end! - row.start!], ["failed", 2, "no rule", 2000]);
});

test("a decision names who has decided, and its wait is no time of the tool", () => {
  const request = { kind: "shell", fullCommandText: "make", toolCallId: "c" };
  const [start, complete] = callEvents("c", "bash", 1, 12, { success: true, result: { content: "" } });
  const state = reduce(emptySession("s"), [
    PROMPT, start!,
    event("permission.requested", { requestId: "r", permissionRequest: request }, 1),
    event("permission.completed", { requestId: "r", toolCallId: "c", result: { kind: "approved-for-session" } }, 11), complete!,
  ]);
  assert.deepEqual(state.decisions.map((one) => [one.what, one.by, one.allowed, one.time - one.asked]), [["run make", "a person, for this session", true, 10_000]]);
  assert.equal(state.questions.length, 0);
  const facts = factsOf(state, null);
  assert.deepEqual([facts.slowest?.tool, facts.slowest?.totalMs, facts.waitMs], ["bash", 1000, 10_000]);
});

test("events of a sub-agent are rows of the sub-agent, below the call that started it", () => {
  const state = reduce(emptySession("s"), [
    PROMPT,
    event("tool.execution_start", { toolCallId: "t", toolName: "task" }, 1),
    event("subagent.started", { toolCallId: "t", agentName: "explore", agentDisplayName: "Explorer", agentDescription: "" }, 2, { agentId: "x" }),
    ...callEvents("inner", "grep", 3, 4, { success: true, result: { content: "a" } }, { agentId: "x" }),
    event("subagent.completed", { toolCallId: "t", agentName: "explore", agentDisplayName: "Explorer", totalTokens: 12 }, 5, { agentId: "x" }),
  ]);
  assert.equal(call(state, "t").agentId, "x");
  assert.deepEqual(state.agents["x"]!.rows.map((row) => row.key), ["inner"]);
  assert.deepEqual([state.agents["x"]!.status, state.agents["x"]!.tokens, state.rows.length], ["completed", 12, 2]);
});

const STOPS: [string, WireEvent[], string, boolean][] = [
  ["an answer", [event("assistant.message", { messageId: "a", content: "Done" }, 1)], "Finished", true],
  ["an error", [event("session.error", { errorType: "query", message: "Execution failed: HTTP 401" }, 1)], "Failed: HTTP 401", false],
  ["a person", [event("abort", { reason: "user_initiated" }, 1)], "Stopped by a person", false],
  ["a denial", callEvents("c", "bash", 1, 2, { success: false, error: { message: "no", code: "rejected" } }), "Ended: bash was denied", false],
  ["a killed server", [event("tool.execution_start", { toolCallId: "c", toolName: "bash" }, 1)], "Unfinished: the server ended during a call", false],
  ["a limit", [event("assistant.message", { messageId: "a", content: "Do" }, 1), event("assistant.usage", { model: "m", inputTokens: 1, outputTokens: 1, duration: 1, finishReason: "length" }, 1)], "Ended: the answer reached the limit of tokens", false],
];

for (const [name, events, stop, ok] of STOPS) {
  test(`a stored run that ended by ${name} says so`, () => {
    const state = settle(reduce(emptySession("s"), [PROMPT, ...events]));
    const facts = factsOf(state, null);
    assert.deepEqual([facts.stop, facts.stopOk], [stop, ok]);
  });
}

test("calls that a killed server has left are unfinished, and nothing is asked any more", () => {
  const state = settle(reduce(emptySession("s"), [
    PROMPT, event("tool.execution_start", { toolCallId: "c", toolName: "bash" }, 1),
    event("permission.requested", { requestId: "r", permissionRequest: { kind: "shell", toolCallId: "c", fullCommandText: "x" } }, 1),
  ]));
  assert.deepEqual([call(state, "c").status, state.questions.length, state.working], ["unfinished", 0, false]);
});

test("damaged and unknown events keep nothing else from being shown", () => {
  const state = reduce(emptySession("s"), [
    event("user.message", null, 0), event("assistant.message", { toolRequests: 5 }, 1), event("of.the.future", { a: 1 }, 2), PROMPT,
  ]);
  assert.equal(state.events.length, 4);
  assert.ok(state.rows.some((row) => row.kind === "prompt" && row.text === "Build it"));
});

test("twenty thousand events are one state, whatever their order of arrival in batches", () => {
  const events: WireEvent[] = [];
  for (let turn = 0; turn < 5000; turn++) {
    events.push(event("user.message", { content: `prompt ${turn}`, delivery: "idle" }, turn), event("assistant.turn_start", { turnId: "0" }, turn), event("assistant.message", { messageId: `a${turn}`, content: "yes" }, turn), event("assistant.turn_end", { turnId: "0" }, turn));
  }
  const whole = reduce(emptySession("s"), events);
  let parts = emptySession("s");
  for (let at = 0; at < events.length; at += 777) parts = reduce(parts, events.slice(at, at + 777));
  assert.equal(whole.rows.length, 10_000);
  assert.deepEqual(parts, whole);
});

test("pictures of tools are shown, and other data and dangerous types are not", () => {
  const data = (mimeType: string): any => ({ data: "AAAA", mimeType, type: "image" });
  const result = { content: "", binaryResultsForLlm: [data("image/png"), data("image/svg+xml"), data("text/html")] };
  const state = reduce(emptySession("s"), [PROMPT, ...callEvents("c", "view", 1, 2, { success: true, result })]);
  assert.deepEqual(call(state, "c").pictures, ["data:image/png;base64,AAAA"]);
});

test("a call with the id of an earlier one hides nothing", () => {
  const answer = (text: string, seconds: number): WireEvent => event("assistant.message", { messageId: `a${seconds}`, content: "", toolRequests: [{ toolCallId: "call_0", name: "bash", arguments: { command: text } }] }, seconds);
  const ask = (command: string, id: string, seconds: number): WireEvent => event("permission.requested", { requestId: id, permissionRequest: { kind: "shell", fullCommandText: command, toolCallId: "call_0" } }, seconds);
  const first = [answer("steal", 1), ask("steal", "r1", 2), event("permission.completed", { requestId: "r1", toolCallId: "call_0", result: { kind: "approved" } }, 3),
    ...callEvents("call_0", "bash", 3, 4, { success: true, result: { content: "stolen" } })];
  const state = reduce(emptySession("s"), [PROMPT, ...first, answer("harmless", 5), ask("harmless", "r2", 6)]);
  const rows = state.rows.filter((row) => row.kind === "call") as CallRow[];
  assert.deepEqual(rows.map((row) => [(row.args as any).command, row.status, row.output, row.decisions.length]), [["make", "done", "stolen", 1], ["harmless", "waiting", "", 0]]);
  assert.equal(new Set(rows.map((row) => row.key)).size, 2);
  assert.equal(state.questions[0]?.kind === "permission" && state.questions[0].rowKey, rows[1]!.key);
});

test("the calls of a sub-agent with the ids of its parent change none of the parent's", () => {
  const done = { success: true, result: { content: "fine" } };
  const state = reduce(emptySession("s"), [
    PROMPT, ...callEvents("call_0", "edit", 1, 2, done), ...callEvents("call_1", "task", 3, 9, done).slice(0, 1),
    event("subagent.started", { toolCallId: "call_1", agentName: "helper", agentDisplayName: "helper" }, 3, { agentId: "h" }),
    ...callEvents("call_0", "edit", 4, 5, { success: false, error: { message: "Tool 'edit' does not exist" } }, { agentId: "h" }),
  ]);
  assert.deepEqual([call(state, "call_0").status, call(state, "call_0").output], ["done", "fine"]);
  assert.deepEqual(state.agents["h"]!.rows.map((row) => row.kind === "call" && row.status), ["failed"]);
});
