// The runs of a session, its questions and its changes, as the page shows them.

import assert from "node:assert/strict";
import { test } from "node:test";
import { NetChanges, workMs } from "../src/state/calls.ts";
import { factsOf } from "../src/state/facts.ts";
import { sideBySide, unified } from "../src/state/diff.ts";
import { splitPrompt } from "../src/state/prompts.ts";
import { queueOf } from "../src/state/queue.ts";
import { reduce } from "../src/state/reduce.ts";
import { factsOfRuns, filesOf, itemsOf, unusualOf, type Item } from "../src/state/runs.ts";
import { treeOf } from "../src/state/tree.ts";
import { emptySession, type CallRow, type SessionState, type WireEvent } from "../src/state/types.ts";

let count = 0;
const event = (seconds: number, type: string, data: object, agentId?: string): WireEvent =>
  ({ id: `e${count += 1}`, timestamp: new Date(1e12 + seconds * 1000).toISOString(), type, data, ...(agentId ? { agentId } : {}) });
const prompt = (seconds: number, content: string, more: object = {}): WireEvent => event(seconds, "user.message", { content, messageId: `m${count}`, interactionId: `i ${content}`, ...more });
const answer = (seconds: number, calls: [string, string][], content = ""): WireEvent =>
  event(seconds, "assistant.message", { messageId: `a${count}`, content, toolRequests: calls.map(([toolCallId, name]) => ({ toolCallId, name, arguments: {} })) });
const begin = (seconds: number, toolCallId: string, toolName = "view"): WireEvent => event(seconds, "tool.execution_start", { toolCallId, toolName, arguments: {} });
const end = (seconds: number, toolCallId: string, more: object = {}): WireEvent => event(seconds, "tool.execution_complete", { toolCallId, success: true, result: { content: "ok" }, ...more });
const played = (...events: WireEvent[]): SessionState => reduce(emptySession("s"), events);
const names = (items: Item[]): string[] => items.map((item) => (item.kind === "row" ? item.row.kind : item.kind));

test("usual steps are folded between a prompt and the foot of its run; what is unusual is not", () => {
  const state = played(
    prompt(0, "one"), answer(1, [["a", "view"], ["b", "grep"], ["c", "bash"], ["d", "edit"], ["e", "view"]]),
    begin(1, "a"), end(2, "a"), begin(2, "b", "grep"), end(3, "b"), begin(3, "c", "bash"), end(4, "c", { sandboxed: false }),
    begin(4, "d", "edit"), end(5, "d", { result: { content: "", detailedContent: "--- a/x.py\n+++ b/x.py\n@@ -1 +1,2 @@\n-a\n+b\n+c\n" } }), begin(5, "e"), end(6, "e"),
    answer(7, [], "Done."), prompt(8, "steered", { delivery: "steering" }), prompt(9, "two"),
  );
  const items = itemsOf(state);
  assert.deepEqual(names(items), ["prompt", "steps", "call", "call", "call", "answer", "prompt", "foot", "prompt", "foot"]);
  assert.deepEqual(items.map((item) => item.run), [0, 0, 0, 0, 0, 0, 0, 0, 1, 1]);
  const foot = items[7] as Extract<Item, { kind: "foot" }>;
  assert.deepEqual([...filesOf(state.rows.slice(foot.from, foot.to), state)], [["x.py", { added: 2, removed: 1 }]]);
  const calls = state.rows.filter((row): row is CallRow => row.kind === "call");
  assert.deepEqual(calls.map((call) => unusualOf(call, state).map((one) => one.text)), [[], [], ["outside of the sandbox"], [], []]);
});

test("a call that ran with other arguments than those of the model is said to be edited", () => {
  const state = played(prompt(0, "go"), answer(1, [["a", "bash"]]), begin(1, "a", "bash"), end(2, "a", { effectiveArguments: { command: "true" } }));
  assert.deepEqual(unusualOf(state.rows[1] as CallRow, state).map((one) => one.text), ["edited"]);
});

test("the time of a run counts each moment once, by the server or from the log alike", () => {
  const state = played(
    prompt(0, "go"), event(1, "assistant.turn_start", { turnId: "1" }), answer(3, [["a", "view"], ["b", "view"], ["q", "ask_user"]]),
    begin(3, "a"), begin(3, "b"), end(5, "a"), end(6, "b"), begin(6, "q", "ask_user"), end(16, "q"), event(17, "session.idle", {}),
  );
  const [run] = factsOfRuns(state, []);
  assert.deepEqual([run!.waitingMs, run!.modelMs, run!.toolsMs, run!.otherMs, run!.totalMs], [10_000, 2000, 3000, 2000, 17_000]);
  const counted = { interactionId: "i go", startedAt: "", waitingMs: 4, modelMs: 3, toolsMs: 2, otherMs: 1, inputTokens: 50, outputTokens: 7, cacheReadTokens: 0, costUsd: 0.5 };
  // A prompt that no person has sent belongs to the run before.
  const runs = factsOfRuns(state, [counted, { ...counted, interactionId: "by a schedule" }]);
  assert.deepEqual([runs[0]!.totalMs, runs[0]!.tokensIn, runs[0]!.costUsd], [20, 100, 1]);
  const facts = factsOf(state, null, runs);
  assert.deepEqual([facts.waitMs, facts.modelMs, facts.toolMs, facts.runMs], [8, 6, 4, 20]);
});

test("a question knows its place among those of its answer, and what waits behind it", () => {
  const asked = (id: string, call: string, callsBehind?: number): WireEvent => event(2, "permission.requested", { requestId: id, permissionRequest: { kind: "shell", toolCallId: call, fullCommandText: call }, callsBehind });
  let state = played(prompt(0, "go"), answer(1, [["a", "bash"], ["b", "bash"], ["c", "bash"]]), begin(1, "a", "bash"), asked("1", "a", 2));
  assert.deepEqual([queueOf(state).place, queueOf(state).total, queueOf(state).isOpen, queueOf(state).next.length], [1, 3, true, 2]);
  state = reduce(state, [event(3, "permission.completed", { requestId: "1", toolCallId: "a", result: { kind: "approved" } }), end(4, "a"), begin(4, "b", "bash"), asked("2", "b", 1)]);
  assert.deepEqual([queueOf(state).place, queueOf(state).total, queueOf(state).next.map((one) => one.what)], [2, 3, ["bash"]]);
  // Another agent asks at the same time.
  state = reduce(state, [event(5, "user_input.requested", { requestId: "3", question: "Which?" })]);
  assert.deepEqual([queueOf(state).total, queueOf(state).next[0]], [4, { what: "question", subject: "Which?" }]);
  assert.equal(queueOf(emptySession("s")).total, 0);
});

test("lines that are added and removed again are no change of their file, and waits no time of their call", () => {
  const net = new NetChanges();
  net.apply("--- /dev/null\n+++ b/a\n@@ -0,0 +1,4 @@\n+one\n+two\n+three\n+four\n");
  net.apply("--- a/a\n+++ b/a\n@@ -2,2 +2,3 @@\n two\n-three\n+3\n+3.5\n");
  assert.deepEqual([net.added, net.removed], [5, 0]);
  net.apply("--- a/a\n+++ b/a\n@@ -1 +0,0 @@\n-one\n@@ -5 +4 @@\n-four\n+4\n");
  assert.deepEqual([net.added, net.removed], [4, 0]);
  const other = new NetChanges();
  other.apply("--- a/b\n+++ b/b\n@@ -10,2 +10,3 @@\n-old\n+new\n+newer\n same\n");
  other.apply("--- a/b\n+++ b/b\n@@ -1 +1,2 @@\n first\n+second\n@@ -12 +13 @@\n-same\n+other\n");
  other.apply("--- a/b\n+++ b/b\n@@ -11,2 +11,1 @@\n-new\n newer\n");
  assert.deepEqual([other.added, other.removed], [3, 2]);
  const row: any = { start: 100, end: 500, decisions: [{ asked: 150, time: 350 }] };
  assert.deepEqual([workMs(row, 900), workMs({ ...row, end: null }, 900), workMs({ ...row, start: null }, 900)], [200, 600, null]);
});

test("removed lines come before added ones where a diff has one column", () => {
  const [file] = sideBySide("--- a/x\n+++ b/x\n@@ -1,4 +1,5 @@\n same\n-one\n-two\n+1\n+2\n+3\n same\n");
  assert.deepEqual(unified(file!.rows).map((row) => row.kind), ["same", "old", "old", "new", "new", "new", "same"]);
});

test("changed files are a tree from the folder of the session, and others from the root", () => {
  const tree = treeOf(["/p/a/b/one", "/p/a/b/two", "/p/three", "/etc/x/four"].map((path) => ({ path })), "/p");
  assert.deepEqual(tree.folders.map((one) => [one.name, one.files.map((file) => file.name)]), [["a/b", ["one", "two"]], ["/etc/x", ["four"]]]);
  assert.deepEqual(tree.files.map((one) => one.name), ["three"]);
});

test("prompts are shown without the output of the user's commands, however much it looks like one", () => {
  const ran = (line: string): string => `\n\n<user_command line="${line}">\nx\n[exit code 0]\n</user_command>`;
  assert.deepEqual(splitPrompt(`fix it${ran("ls")}${ran("git status")}`), { text: "fix it", commands: ["ls", "git status"] });
  assert.deepEqual(splitPrompt("what is </user_command>"), { text: "what is </user_command>", commands: [] });
  const long = `x${"</user_command>".repeat(20_000)}`;
  assert.equal(splitPrompt(long).text, long);
});
