import assert from "node:assert/strict";
import { test } from "node:test";
import { href, parse } from "../src/route.ts";
import { Rpc } from "../src/rpc.ts";
import { sideBySide } from "../src/state/diff.ts";
import { messageStep } from "../src/state/exports.ts";
import { approvalScope, decidedBy } from "../src/state/permissions.ts";
import { merge, ticks, zoom, type Bar } from "../src/state/timeline.ts";
import { isCostly } from "../src/state/costly.ts";
import { takePass } from "../src/socket.ts";

test("a diff has its old lines on the left, its new ones on the right, and marks changed words", () => {
  const [file] = sideBySide("--- a/x.py\n+++ b/x.py\n@@ -1,3 +1,4 @@\n import os\n-limit = 10\n+limit = 20\n+b = 3\n end\n");
  assert.deepEqual(file!.rows.map((row) => [row.kind, row.left?.line ?? null, row.right?.line ?? null]), [
    ["same", 1, 1], ["changed", 2, 2], ["added", null, 3], ["same", 3, 4],
  ]);
  assert.deepEqual(file!.rows[1]!.right!.parts.filter((part) => part.changed).map((part) => part.text), ["20"]);
  assert.deepEqual([file!.path, file!.added, file!.removed], ["x.py", 2, 1]);
  assert.deepEqual(sideBySide("no diff"), []);
  const [moved] = sideBySide("--- a/x\n+++ b/x\n@@ -1 +1,2 @@\n-return clean(text)\n+text = load()\n+return clean(text, all)\n");
  assert.deepEqual(moved!.rows.map((row) => [row.kind, row.left?.line ?? null, row.right?.line ?? null]), [["added", null, 1], ["changed", 1, 2]]);
});

test("an approval beyond a call says what it covers", () => {
  const shell = (commands: any[], more: any = {}): any => ({ kind: "shell", fullCommandText: "git add . && git commit", commands, canOfferSessionApproval: true, ...more });
  const git = { identifier: "git add", readOnly: false };
  const commit = { identifier: "git commit", readOnly: false };
  assert.equal(approvalScope(shell([git]), "/p"), "git add");
  assert.equal(approvalScope(shell([git, commit]), "/p"), "this exact line: git add . && git commit");
  assert.equal(approvalScope(shell([git], { requestSandboxBypass: true }), "/p"), "this exact line, outside of the sandbox: git add . && git commit");
  assert.equal(approvalScope(shell([git], { canOfferSessionApproval: false }), "/p"), "");
  assert.equal(approvalScope({ kind: "write", fileName: "/p/a" }, "/p"), "all changes in /p");
  assert.equal(approvalScope({ kind: "write", fileName: "a", resolvedPath: "/etc/a" }, "/p"), "all changes in /p, and /etc/a");
  assert.equal(approvalScope({ kind: "read", path: "/pp/a" }, "/p"), "all reads in /p, and /pp/a");
  assert.equal(approvalScope({ kind: "url", url: "https://example.org/a" }, "/p"), "all of example.org");
  assert.deepEqual(decidedBy({ kind: "denied-by-rules" }), { allowed: false, text: "a rule" });
});

test("places in the page survive their address", () => {
  for (const place of [{ view: "home" }, { view: "new" }, { view: "session", id: "a/b c", tab: "wire", at: "e%1" }, { view: "compare", left: "a", right: null }] as const) {
    assert.deepEqual(parse(href(place)), place);
  }
  assert.deepEqual(parse("#/session/x/nonsense"), { view: "session", id: "x", tab: "transcript", at: null });
});

test("a pass is taken out of the address and of the history", () => {
  const replaced: unknown[] = [];
  const past = { replaceState: (...values: unknown[]) => replaced.push(values) } as unknown as History;
  assert.equal(takePass({ hash: "#pass=pass-abc", pathname: "/" } as Location, past), "pass-abc");
  assert.deepEqual(replaced, [[null, "", "/"]]);
  assert.equal(takePass({ hash: "#/session/pass=1", pathname: "/" } as Location, past), null);
});

test("answers find their requests, a withdrawn question is answered, and no token is recorded", async () => {
  const rpc = new Rpc();
  const sent: any[] = [];
  rpc.attach({ send: (message) => sent.push(JSON.parse(message)), close: () => undefined });
  const first = rpc.call("connect", { token: "secret-token" });
  const second = rpc.call("session.list", {});
  rpc.receive(JSON.stringify({ jsonrpc: "2.0", id: 2, result: { sessions: [] } }));
  rpc.receive(JSON.stringify({ jsonrpc: "2.0", id: 1, error: { code: -1, message: "no" } }));
  assert.deepEqual(await second, { sessions: [] });
  await assert.rejects(first, /no/);
  rpc.receive(JSON.stringify({ jsonrpc: "2.0", id: "q", method: "userInput.request", params: {} }));
  rpc.receive(JSON.stringify({ jsonrpc: "2.0", method: "$/cancelRequest", params: { id: "q" } }));
  rpc.receive(JSON.stringify({ jsonrpc: "2.0", id: "h", method: "hooks.invoke", params: {} }));
  assert.deepEqual(sent.slice(2).map((one) => [one.id, one.error.code]), [["q", -32800], ["h", -32601]]);
  assert.ok(!JSON.stringify(rpc.messages).includes("secret-token"));
  const lost = rpc.call("session.list", {});
  rpc.detach();
  await assert.rejects(lost, /ended/);
});

test("a message of the page is a step of a script", () => {
  assert.equal(messageStep({ sent: true, kind: "request", method: "session.send", body: { params: { prompt: "x" } } }), '- call: session.send\n  params: {"prompt":"x"}\n');
});

test("zooming stays inside of the run, around its place", () => {
  const whole = { from: 0, to: 1000 };
  assert.deepEqual(zoom(whole, whole, 0.5, 0.5), { from: 250, to: 750 });
  assert.deepEqual(zoom({ from: 0, to: 500 }, whole, 2, 0), { from: 0, to: 1000 });
  assert.deepEqual(zoom(whole, whole, 4, 0.2), whole);
  assert.deepEqual(ticks(1000, 5), [0, 200, 400, 600, 800, 1000]);
});

test("bars are merged in the columns of a scale", () => {
  const bar = (kind: Bar["kind"], start: number, end: number, depth = 0): Bar => ({ kind, key: `${kind} ${start}`, label: "", start, end, firstMs: null, agentId: null, run: 0, ok: true, rowKey: null, depth, subject: "", workMs: end - start, leaf: true });
  const clock = { at: (time: number): number => time, length: 100 };
  assert.deepEqual(merge([bar("model", 0, 1), bar("model", 2, 30), bar("tool", 95, 95)], clock, { from: 0, to: 100 }, 100, 10), [
    { kind: "model", from: 0, to: 0.3 }, { kind: "tool", from: 0.9, to: 1 },
  ]);
});

test("a decision names the person and the client, as far as they are known", () => {
  const by = (who: any, kind = "approved"): string => decidedBy({ kind }, who).text;
  assert.equal(by(null), "a person, once");
  assert.equal(by({ client: "vscode" }), "a person in VS Code, once");
  assert.equal(by({ client: "jumpseat-web", token: "ada" }, "approved-for-session"), "ada in the page, for this session");
  assert.equal(by({ client: "my-app" }, "denied-interactively-by-user"), "the client my-app");
  assert.equal(by({ client: "my-app", token: "ada" }), "ada in the client my-app, once");
  assert.equal(by({ token: "ada" }), "ada, once");
  assert.equal(by({ client: "vscode" }, "denied-by-rules"), "a rule");
});

test("texts that would hold up the page are not parsed as Markdown, and ordinary ones are", () => {
  const costly = ["> - ".repeat(2000), ">".repeat(5000), "_a__".repeat(20_000), "a".repeat(300_000), "[".repeat(3) + "a[".repeat(5000),
    Array.from({ length: 600 }, (_, at) => " ".repeat(2 * at) + "- x").join("\n"), "|a|b|\n|-|-|\n" + "|a|b|\n".repeat(20_000)];
  for (const text of costly) assert.ok(isCostly(text), text.slice(0, 20));
  const code = "```python\n" + "x = [a[i] * b[i] | c for i in d]\n".repeat(3000) + "```\n";
  for (const text of ["# Title\n\nSome *text*.\n\n" + code, "- a\n  - b\n    - c\n", "word ".repeat(20_000)]) assert.ok(!isCostly(text), text.slice(0, 20));
});
