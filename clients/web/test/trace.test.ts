import assert from "node:assert/strict";
import { test } from "node:test";
import type { ModelCallUsage } from "../src/generated/wire.ts";
import { callsOf } from "../src/state/facts.ts";
import { asCsv, EventLog, eventLines, messageLines, verdictsOf } from "../src/state/log.ts";
import { reduce, withCalls } from "../src/state/reduce.ts";
import { partsIn, partsOf, sumByRun } from "../src/state/call_usage.ts";
import { lanesOf, longestOf, placeLabel } from "../src/state/timeline.ts";
import { emptySession, type WireEvent } from "../src/state/types.ts";

let number = 0;
function event(type: string, data: any, seconds: number, more: Partial<WireEvent> = {}): WireEvent {
  return { id: `e${++number}`, timestamp: new Date(1_700_000_000_000 + seconds * 1000).toISOString(), type, data, ...more };
}

const prompt = (text: string, seconds: number): WireEvent => event("user.message", { content: text, delivery: "idle" }, seconds);
const start = (id: string, tool: string, args: any, seconds: number, more: Partial<WireEvent> = {}): WireEvent => event("tool.execution_start", { toolCallId: id, toolName: tool, arguments: args }, seconds, more);
const end = (id: string, seconds: number, result: any = { success: true, result: { content: "" } }, more: Partial<WireEvent> = {}): WireEvent => event("tool.execution_complete", { toolCallId: id, ...result }, seconds, more);
const failed = { success: true, result: { content: "no\n<exited with exit code 1>" } };

/** A run with a command that waits for 60 s, one with a sub-agent, and one that fails. */
const SESSION = [
  prompt("Build it", 0),
  event("assistant.turn_start", {}, 0), event("assistant.message", { messageId: "a", content: "", model: "large" }, 4), event("assistant.turn_end", {}, 4),
  start("c1", "bash", { command: "make all\nmake more" }, 4),
  event("permission.requested", { requestId: "r", permissionRequest: { kind: "shell", fullCommandText: "make all", toolCallId: "c1" } }, 4),
  event("permission.completed", { requestId: "r", toolCallId: "c1", result: { kind: "approved-for-session", approval: { kind: "commands", commandIdentifiers: ["make"] } }, decidedBy: { client: "vscode", token: "ada" } }, 64),
  end("c1", 71, failed), event("session.idle", {}, 72),
  prompt("Find it", 100),
  start("c2", "task", { description: "Look around" }, 101),
  event("subagent.started", { toolCallId: "c2", agentName: "explore", agentDisplayName: "Scout" }, 101, { agentId: "x" }),
  start("c3", "grep", { pattern: "needle", path: "." }, 102, { agentId: "x" }), end("c3", 105, undefined, { agentId: "x" }),
  event("subagent.completed", { toolCallId: "c2", agentDisplayName: "Scout" }, 106, { agentId: "x" }),
  end("c2", 106), event("session.idle", {}, 107),
];

test("the timeline has all runs, whose bars name commands, files and models, and whose waits take no length unless wanted", () => {
  const state = reduce(emptySession("s"), SESSION);
  const lanes = lanesOf(state, false);
  assert.deepEqual(lanes.map((lane) => [lane.run.prompt, lane.clock.length]), [["Build it", 12_000], ["Find it", 7000]]);
  assert.deepEqual(lanes[0]!.bars.map((bar) => [bar.kind, bar.label, bar.subject, bar.workMs, bar.depth]), [
    ["model", "large", "large", 4000, 0], ["tool", "bash", "make all", 7000, 0], ["wait", "waits for an approval", "run make all", 60_000, 1],
  ]);
  assert.deepEqual(lanes[1]!.bars.map((bar) => [bar.kind, bar.subject, bar.depth, bar.leaf]), [["tool", "Look around", 0, false], ["agent", "Look around", 1, false], ["tool", "needle", 2, true]]);
  // The wait is below its call, not below one that began meanwhile.
  const ask = (id: string, seconds: number): WireEvent => event("permission.requested", { requestId: id, permissionRequest: { kind: "shell", fullCommandText: id, toolCallId: id } }, seconds);
  const parallel = reduce(emptySession("s"), [prompt("Both", 0), start("c1", "bash", { command: "one" }, 1), start("c2", "bash", { command: "two" }, 1), ask("c1", 2), end("c2", 3), end("c1", 4), event("session.idle", {}, 5)]);
  assert.deepEqual(lanesOf(parallel, true)[0]!.bars.map((bar) => [bar.kind, bar.start / 1000 - 1_700_000_000, bar.depth]), [["tool", 1, 0], ["wait", 2, 1], ["tool", 1, 0]]);
  const bash = lanes[0]!.bars[1]!;
  assert.deepEqual([lanes[0]!.clock.at(bash.start), lanes[0]!.clock.at(bash.end!)], [4000, 11_000]);
  assert.equal(lanesOf(state, true)[0]!.clock.length, 72_000);
});

test("what took longest is a list of at most five, with the reasons, and without bars that only contain others", () => {
  const state = reduce(emptySession("s"), SESSION);
  const longest = longestOf(lanesOf(state, false), state);
  assert.deepEqual(longest.map((one) => [one.bar.label, one.bar.workMs, one.why]), [
    ["waits for an approval", 60_000, ""], ["bash", 7000, "after a wait of 1 min 0 s"], ["large", 4000, ""], ["grep", 3000, "in Scout"],
  ]);
  const many = Array.from({ length: 2000 }, (_, at) => [prompt(`p${at}`, at * 10), start(`k${at}`, "bash", { command: `sleep ${at}` }, at * 10), end(`k${at}`, at * 10 + at / 1000)]).flat();
  const long = reduce(emptySession("s"), many);
  assert.deepEqual(longestOf(lanesOf(long, false), long).map((one) => one.bar.subject), [1999, 1998, 1997, 1996, 1995].map((at) => `sleep ${at}`));
});

test("time in which a sub-agent works is no standstill, although another waits", () => {
  const state = reduce(emptySession("s"), [
    prompt("Go", 0), start("c", "bash", { command: "x" }, 1),
    event("permission.requested", { requestId: "r", permissionRequest: { kind: "shell", toolCallId: "c", fullCommandText: "x" } }, 1),
    start("d", "grep", { pattern: "y" }, 2), end("d", 5),
    event("permission.completed", { requestId: "r", toolCallId: "c", result: { kind: "approved" } }, 9), end("c", 10), event("session.idle", {}, 10),
  ]);
  // It stands still from 1 to 2 and from 5 to 9.
  assert.equal(lanesOf(state, false)[0]!.clock.length, 5000);
});

test("runs that have ended are not computed again", () => {
  const first = reduce(emptySession("s"), SESSION);
  const before = lanesOf(first, false);
  const second = reduce(first, [prompt("More", 200), start("c9", "bash", { command: "date" }, 201)]);
  const after = lanesOf(second, false, before);
  assert.deepEqual(after.map((lane, at) => lane === before[at]), [true, true, false]);
  assert.deepEqual(lanesOf(second, true, before).map((lane, at) => lane === before[at]), [false, false, false]);
});

test("the label of a bar is inside if it fits, else where there is room", () => {
  assert.equal(placeLabel("make all 7 s", 0, 300, 600).where, "inside");
  assert.equal(placeLabel("make all 7 s", 0, 10, 600).where, "right");
  assert.equal(placeLabel("make all 7 s", 590, 600, 600).where, "left");
  assert.deepEqual(placeLabel("make all 7 s".repeat(40), 100, 110, 600), { where: "right", widthPx: 490 });
});

test("each line of the log says what it is about and how it ended, also after the call was named", () => {
  const lines = eventLines([...SESSION, event("of.the.future", { state: "new", deep: {} }, 108), event("tool.execution_complete", null, 109)]);
  const told = Object.fromEntries(lines.slice(0, 10).map((line) => [line.name, [line.about, line.outcome]]));
  assert.deepEqual(told["tool.execution_complete"], ["bash make all make more", "exit 1 · 7.0 s"]);
  assert.deepEqual(told["permission.completed"], ["approved by ada in VS Code, for this session: run make all", "rule: commands: make · after 1 min 0 s"]);
  assert.deepEqual(lines.slice(-2).map((line) => line.about), ["the future: state new", ""]);
  assert.deepEqual(lines.slice(0, -1).filter((line) => !line.about).map((line) => line.name), []);
  assert.deepEqual([lines[7]!.sincePrompt, lines[7]!.topic, lines[7]!.bad], [71_000, "error", true]);
  const [asked, done, named] = eventLines([
    event("external_tool.requested", { requestId: "x", toolName: "lookup", arguments: { query: "cats" } }, 1), event("external_tool.completed", { requestId: "x" }, 3), event("session.todos_changed", {}, 4),
  ]);
  assert.deepEqual([asked!.about, done!.about, done!.outcome, named!.about], ["a client runs lookup cats", "a client has run lookup cats", "2.0 s", "todos changed"]);
  const log = new EventLog();
  const begun = log.lines(SESSION.slice(0, 6));
  const grown = log.lines(SESSION);
  assert.deepEqual(grown, eventLines(SESSION));
  assert.equal(grown[0], begun[0]);
  assert.deepEqual(log.lines(SESSION.slice(8)), eventLines(SESSION.slice(8)));
  const message = (kind: any, body: any, more: any = {}): any => ({ number: 1, time: 5, sent: true, method: "session.send", kind, id: 3, sessionId: "s", bytes: 77, body, ...more });
  const [request, response] = messageLines([message("request", { params: { prompt: "Hi", attachments: [1, 2] } }), message("response", { result: { messageId: "m" } }, { sent: false, time: 25 })]);
  assert.deepEqual([request!.about, response!.about, response!.outcome], ["prompt Hi, attachments [2]", "messageId m", "77 bytes · 20 ms · #3"]);
});

test("the decisions name what ran without a question, and are a table in which no cell is a formula", () => {
  const state = reduce(emptySession("s"), [
    ...SESSION, start("c4", "bash", { command: "=cmd()" }, 110),
    start("c5", "bash", { command: "git status" }, 111), end("c5", 112, { success: true, result: { content: "" }, jumpseatDecision: { by: "rule", reason: "shell(git status)" } }),
    start("c6", "bash", { command: "id" }, 113), end("c6", 114, { success: false, error: { message: "no", code: "denied" }, jumpseatDecision: { by: "nobody" } }),
  ]);
  const verdicts = verdictsOf(state, callsOf(state));
  assert.deepEqual(verdicts.map((one) => [one.what, one.by, one.rule]), [
    ["run make all", "ada in VS Code, for this session", "rule: commands: make"], ["task Look around", "nobody was asked", ""], ["grep needle", "nobody was asked", ""], ["bash =cmd()", "nobody was asked", ""],
    ["bash git status", "a rule", "shell(git status)"], ["bash id", "nobody could be asked", ""],
  ]);
  const csv = asCsv([{ ...verdicts[0]!, what: '=HYPERLINK("x")', by: "-ada" }]).split("\r\n");
  assert.match(csv[1]!, /,"approved","'=HYPERLINK\(""x""\)","'-ada",/);
});

test("kept calls belong to their agent: the plots of the context have the session's alone, and no token counts twice", () => {
  const used = (seconds: number, input: number, more: Partial<ModelCallUsage> = {}): ModelCallUsage => ({
    time: new Date(1_700_000_000_000 + seconds * 1000).toISOString(), purpose: "turn", model: "large", inputTokens: input, outputTokens: 10, cacheReadTokens: 4, cacheWriteTokens: 0,
    reasoningTokens: 3, durationMs: 1000, contextWindow: 1000, ...more,
  } as ModelCallUsage);
  const state = withCalls(reduce(emptySession("s"), SESSION), [used(4, 100), used(103, 50, { agentId: "x" }), used(106.5, 200)]);
  assert.deepEqual(state.context.map((one) => one.tokens), [110, 210]);
  assert.deepEqual(state.spans.find((span) => span.kind === "model")!.tokens, { input: 100, output: 10 });
  assert.deepEqual(sumByRun(state.runs, state.usage).map((one) => [one.run.prompt, one.calls, one.input]), [["Build it", 1, 100], ["Find it", 2, 250]]);
  assert.deepEqual(partsOf(state.usage[0]!), { cached: 4, input: 96, reasoning: 3, output: 7 });
  assert.deepEqual(partsIn(state.usage), ["cached", "input", "reasoning", "output"]);
});
