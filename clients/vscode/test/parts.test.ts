// The parts of the extension that know nothing of the editor.

import assert from "node:assert/strict";
import { chmodSync, mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { test } from "node:test";
import { Rpc } from "../../web/src/rpc.ts";
import { proposedText } from "../../web/src/state/proposal.ts";
import { SETTLE_MS, Settling } from "../../web/src/state/settling.ts";
import { after, IDLE } from "../src/activity.ts";
import { executable, findServer, isExecutable, serverOfFolder, type Places } from "../src/executable.ts";
import { editorsText, plainOutput, problemsText, runsText, selectionText } from "../src/format.ts";
import { frame, Frames } from "../src/framing.ts";
import { Freshness } from "../src/freshness.ts";
import { Relay } from "../src/relay.ts";
import { adapt, RESTRICTED } from "../src/requests.ts";
import { Server, type Status } from "../src/server.ts";

test("messages are found in a stream however it is cut, and a stream of something else is refused", () => {
  const texts = ['{"a":"ü"}', "{}", `{"long":"${"x".repeat(5000)}"}`];
  const stream = Buffer.concat(texts.map(frame));
  for (const size of [1, 7, 4096, stream.length]) {
    const frames = new Frames();
    const found: string[] = [];
    for (let at = 0; at < stream.length; at += size) found.push(...frames.push(stream.subarray(at, at + size)));
    assert.deepEqual(found, texts);
  }
  assert.throws(() => new Frames().push(Buffer.from("Traceback: no\r\n\r\n")), /without its length/);
  assert.throws(() => new Frames().push(Buffer.alloc(5000, "x")), /something other than messages/);
});

test("pages share one connection: answers go to the page that asked, events to all", async () => {
  const rpc = new Rpc(0);
  const sent: any[] = [];
  rpc.attach({ send: (text) => sent.push(JSON.parse(text)), close: () => undefined });
  const relay = new Relay(rpc, (method, params) => {
    if (method === "session.abort") throw new Error("not here");
    return { ...params, clientName: "vscode" };
  });
  const pages = [1, 2].map(() => {
    const received: any[] = [];
    return { received, receive: (text: string) => void received.push(JSON.parse(text)) };
  });
  for (const page of pages) relay.add(page);
  const both = pages.map((page) => relay.receive(page, JSON.stringify({ jsonrpc: "2.0", id: 1, method: "session.list", params: {} })));
  assert.deepEqual(sent.map((one) => [one.id, one.method, one.params]), [[1, "session.list", { clientName: "vscode" }], [2, "session.list", { clientName: "vscode" }]]);
  rpc.receive(JSON.stringify({ jsonrpc: "2.0", id: 2, result: { of: "two" } }));
  rpc.receive(JSON.stringify({ jsonrpc: "2.0", id: 1, error: { code: -32603, message: "broken", data: { why: 1 } } }));
  await Promise.all(both);
  assert.deepEqual(pages.map((page) => page.received), [
    [{ jsonrpc: "2.0", id: 1, error: { code: -32603, message: "broken", data: { why: 1 } } }], [{ jsonrpc: "2.0", id: 1, result: { of: "two" } }],
  ]);
  await relay.receive(pages[0]!, JSON.stringify({ jsonrpc: "2.0", id: 2, method: "session.abort", params: {} }));
  assert.deepEqual(pages[0]!.received[1], { jsonrpc: "2.0", id: 2, error: { code: -32600, message: "not here" } });
  relay.notify("session.event", { sessionId: "s" });
  assert.ok(pages.every((page) => page.received.at(-1).method === "session.event"));
});

test("a session gets the folder, the model and the tools of the window; in Restricted Mode there is none", () => {
  const around = { trusted: true, folder: "/work", model: "m", tools: [{ name: "t" }] };
  assert.deepEqual(adapt("session.create", {}, around), { clientName: "vscode", tools: [{ name: "t" }], workingDirectory: "/work", model: "m" });
  assert.deepEqual(adapt("session.create", { workingDirectory: "/other", model: "x" }, { ...around, tools: [] }), { clientName: "vscode", workingDirectory: "/other", model: "x" });
  assert.deepEqual(adapt("session.resume", { sessionId: "s" }, around), { sessionId: "s", clientName: "vscode", tools: [{ name: "t" }] });
  assert.deepEqual(adapt("session.send", { prompt: "p" }, around), { prompt: "p" });
  const restricted = { ...around, trusted: false };
  assert.deepEqual(adapt("session.list", {}, restricted), {});
  for (const method of ["session.create", "session.resume", "session.send", "session.shell.exec", "plugins.install", "some.method"]) {
    assert.throws(() => adapt(method, {}, restricted), { message: RESTRICTED });
  }
});

test("the activity counts working sessions and open questions, and ends with the session", () => {
  const apply = (events: [string, string, any?][]) => events.reduce((activity, [session, type, data]) => after(activity, session, { type, data }), IDLE);
  const busy = apply([["a", "user.message"], ["b", "assistant.turn_start"], ["a", "permission.requested", { requestId: "1" }], ["a", "permission.requested", { requestId: "2", resolvedByHook: true }], ["b", "elicitation.requested", { requestId: "3" }]]);
  assert.deepEqual([[...busy.working], [...busy.questions.keys()]], [["a", "b"], ["1", "3"]]);
  const later = after(after(busy, "a", { type: "permission.completed", data: { requestId: "1" } }), "b", { type: "session.idle" });
  assert.deepEqual([[...later.working], later.questions.size], [["a"], 0]);
  assert.equal(after(later, "a", { type: "assistant.message_delta" }), later);
  assert.equal(after(later, "a", { type: "session.idle", agentId: "x" }), later);
});

test("the model is told problems, editors and the selection with paths that it can use", () => {
  const problems = [
    { path: "/work/b.py", line: 3, column: 1, severity: 1, message: "unused\nname", source: "ruff", code: "F401" },
    { path: "/work/a.py", line: 9, column: 2, severity: 0, message: "bad" }, { path: "/else/c.py", line: 1, column: 1, severity: 3, message: "hint" },
  ];
  assert.equal(problemsText(problems, "/work", 3), "a.py:9:2: error: bad\nb.py:3:1: warning: unused name [ruff F401]\n/else/c.py:1:1: hint: hint");
  assert.equal(problemsText(problems, "/work", 0), "a.py:9:2: error: bad");
  assert.equal(problemsText([], "/work", 3), "No diagnostics.");
  assert.match(problemsText(Array.from({ length: 250 }, () => problems[0]!), "/work", 3), /\n50 more are left out\.$/);
  assert.equal(editorsText([{ path: "/work/a.py", unsaved: true, line: 4, active: true }, { path: "/x/b.py", unsaved: false, line: null, active: false }], "/work"), "a.py (the user is here, line 4; unsaved changes)\n/x/b.py");
  assert.equal(selectionText({ path: "/work/a.py", first: 1, last: 2, text: "one\ntwo" }, "/work"), "a.py, lines 1 to 2:\none\ntwo");
  assert.equal(selectionText(null, "/work"), "Nothing is selected.");
});

test("diagnostics are those of the present text after the last of a series, or once servers have had their time", () => {
  const files = new Freshness();
  assert.ok(files.isFresh("/a.py", 0));
  files.reported("/a.py", 900);
  files.changed("/a.py", 1000);
  assert.ok(!files.isFresh("/a.py", 1200));
  files.reported("/a.py", 1200);
  files.reported("/a.py", 1300);
  assert.ok(!files.isFresh("/a.py", 1400));
  assert.ok(files.isFresh("/a.py", 1450));
  files.changed("/a.py", 2000);
  assert.ok(!files.isFresh("/a.py", 2899));
  assert.ok(files.isFresh("/a.py", 2900));
  files.changed("/a.py", 3000);
  files.forget("/a.py");
  assert.ok(files.isFresh("/a.py", 3000));
});

test("the output of a terminal has no control sequences, and a progress bar its last state", () => {
  assert.equal(plainOutput("\x1b]633;C\x07\x1b[32mok\x1b[0m\r\n10%\r50%\r100%\r\n\x1b[?25hdone\x07"), "ok\n100%\ndone");
  const run = { terminal: "bash", command: "make", folder: "/work/x", output: "ok\n", exitCode: 2, running: false };
  assert.equal(runsText([run, { ...run, running: true, exitCode: null, folder: "" }], "/work"), "$ make\nok\n<bash in x, exit code 2>\n\n$ make\nok\n<bash, still running>");
  assert.equal(runsText([{ ...run, output: "" }], "/work"), "$ make\n[no output was reported]\n<bash in x, exit code 2>");
});

test("the proposal of an edit is its patch applied; a patch that does not fit gives none", () => {
  const diff = "--- work/a.py\n+++ work/a.py\n@@ -1,2 +1,2 @@\n one\n-two\n+three\n";
  assert.equal(proposedText({ diff }, "one\ntwo\n"), "one\nthree\n");
  assert.equal(proposedText({ diff }, "other\nfile\n"), null);
  assert.equal(proposedText({ diff, newFileContents: "whole" }, ""), "whole");
  assert.equal(proposedText({ diff: "no diff" }, ""), null);
});

/** A program in place of the server: `connect` is answered as the script says. */
function serverOf(script: string): { server: Server; seen: Status[] } {
  const server = new Server(() => Promise.resolve({ path: process.execPath, arguments: ["-e", script, "--"], environment: process.env, folder: "/" }), () => undefined);
  const seen: Status[] = [];
  server.onStatus = (status) => seen.push(status);
  return { server, seen };
}

const ANSWER = (result: string): string => `const body = JSON.stringify({jsonrpc:"2.0",id:1,result:${result}}); process.stdin.once("data", () => process.stdout.write("Content-Length: " + body.length + "\\r\\n\\r\\n" + body)); process.stdin.on("end", () => process.exit(0));`;

test("a server that cannot be used fails with the reason", async () => {
  const cases: [string, RegExp][] = [
    ["process.exit(3)", /exit code 3/], ["process.stdout.write('hello\\r\\n\\r\\n'); setInterval(() => 0, 1000)", /ended by SIGKILL/], [ANSWER('{"protocolVersion":2}'), /speaks the protocol 2: expected 3/],
  ];
  for (const [script, expected] of cases) {
    const { server } = serverOf(script);
    await server.start();
    assert.equal(server.status.kind, "failed");
    assert.match((server.status as any).problem, expected);
    await server.stop();
  }
  const missing = new Server(() => Promise.resolve({ path: "/no/such/command", arguments: [], environment: {}, folder: "/" }), () => undefined);
  await missing.start();
  assert.deepEqual(missing.status, { kind: "failed", problem: "cannot find the command /no/such/command", missing: true });
  const named = new Server(() => Promise.resolve({ path: "node", arguments: [], environment: process.env, folder: "/" }), () => undefined);
  await named.start();
  assert.deepEqual(named.status, { kind: "failed", problem: "cannot find the command node", missing: true });
});

test("a command is looked up in PATH, and not in the workspace", () => {
  const places = (platform: NodeJS.Platform, PATH: string, ...files: string[]): Places => ({
    platform, environment: platform === "win32" ? { Path: PATH } : { PATH }, folders: [platform === "win32" ? "C:\\work" : "/work"], isExecutable: (file) => files.includes(file),
  });
  assert.equal(executable("jumpseat", places("linux", "/none:/bin:/usr/bin", "/bin/jumpseat", "/usr/bin/jumpseat")), "/bin/jumpseat");
  assert.equal(executable("jumpseat", places("linux", ".::bin:/work/.venv/bin:/work:/bin", "jumpseat", "bin/jumpseat", "/work/.venv/bin/jumpseat", "/work/jumpseat", "/bin/jumpseat")), "/bin/jumpseat");
  assert.equal(executable("jumpseat", places("linux", "/workers/bin:/..work", "/workers/bin/jumpseat")), "/workers/bin/jumpseat");
  assert.equal(executable("jumpseat", places("linux", "/work/bin", "/work/bin/jumpseat")), null);
  assert.equal(executable("bin/jumpseat", places("linux", "/", "/bin/jumpseat")), null);
  assert.equal(executable("/opt/jumpseat", places("linux", "")), "/opt/jumpseat");
  assert.equal(executable("jumpseat", places("win32", ".;C:\\work\\Scripts;C:\\Python", "jumpseat.exe", "C:\\work\\jumpseat.exe", "C:\\work\\Scripts\\jumpseat.exe", "C:\\Python\\jumpseat.exe")), "C:\\Python\\jumpseat.exe");
  assert.equal(executable("jumpseat.exe", places("win32", "C:\\Python", "C:\\Python\\jumpseat.exe")), "C:\\Python\\jumpseat.exe");
  assert.equal(executable("x\\jumpseat", places("win32", "C:\\Python", "C:\\Python\\x\\jumpseat.exe")), null);
});

test("a server that was started is ended by the end of its input, and started again in the midst of a start", async () => {
  const { server, seen } = serverOf(ANSWER('{"protocolVersion":3,"version":"1.2.3"}'));
  const first = server.start();
  await server.restart();
  await first;
  assert.deepEqual(server.status, { kind: "ready", version: "1.2.3" });
  await server.stop();
  assert.equal(seen.filter((status) => status.kind === "ready").length, 1);
  assert.equal(server.status.kind, "stopped");
});

test("a change takes no answer before a person can have seen it, and none that was never shown", () => {
  const settling = new Settling();
  assert.equal(settling.isSettled("a", 10_000), false);
  settling.shown("a", 10_000);
  assert.equal(settling.isSettled("a", 10_000 + SETTLE_MS - 1), false);
  assert.equal(settling.isSettled("a", 10_000 + SETTLE_MS), true);
  // Another editor was in front of it.
  settling.shown("a", 20_000);
  assert.equal(settling.isSettled("a", 20_100), false);
  settling.forget("a");
  assert.equal(settling.isSettled("a", 30_000), false);
});

test("a server is found where installers put it, but none of the folder is started unasked", () => {
  const places = (environment: NodeJS.ProcessEnv, ...files: string[]): Places => ({
    platform: "linux", environment, folders: ["/work"], home: "/home/ada", isExecutable: (file) => files.includes(file),
  });
  const found = (environment: NodeJS.ProcessEnv, ...files: string[]): string => findServer("jumpseat", places(environment, ...files), "/extension");
  assert.equal(found({ PATH: "/bin" }, "/home/ada/.local/bin/jumpseat", "/extension/server/jumpseat"), "/home/ada/.local/bin/jumpseat");
  assert.equal(found({ PATH: "/bin", VIRTUAL_ENV: "/envs/one" }, "/envs/one/bin/jumpseat", "/home/ada/.local/bin/jumpseat"), "/envs/one/bin/jumpseat");
  assert.equal(found({ PATH: "/bin" }, "/extension/server/jumpseat"), "/extension/server/jumpseat");
  const own = "/work/.venv/bin/jumpseat";
  assert.equal(found({ PATH: "/work/.venv/bin", VIRTUAL_ENV: "/work/.venv" }, own), "jumpseat");
  assert.equal(serverOfFolder(places({}, own)), own);
  assert.equal(serverOfFolder(places({})), null);
  assert.equal(findServer("other", places({ PATH: "/bin" }, "/home/ada/.local/bin/other"), "/extension"), "other");
});

test("the server of the settings comes first, then one in the path, then the one in the extension", { skip: process.platform === "win32" }, () => {
  const folder = mkdtempSync(join(tmpdir(), "finding-"));
  try {
    const bin = join(folder, "bin");
    // Not the one of this machine.
    const places: Places = { platform: process.platform, environment: { PATH: bin }, folders: [], isExecutable: (file) => file.startsWith(folder) && isExecutable(file) };
    const extension = join(folder, "extension");
    mkdirSync(bin);
    mkdirSync(join(extension, "server"), { recursive: true });
    assert.equal(findServer("jumpseat", places, extension), "jumpseat");
    writeFileSync(join(extension, "server", "jumpseat"), "#!/bin/sh\n", { mode: 0o755 });
    assert.equal(findServer("jumpseat", places, extension), join(extension, "server", "jumpseat"));
    assert.equal(findServer("jumpseat", places, undefined), "jumpseat");
    writeFileSync(join(bin, "jumpseat"), "no program", { mode: 0o644 });
    assert.equal(findServer("jumpseat", places, extension), join(extension, "server", "jumpseat"));
    chmodSync(join(bin, "jumpseat"), 0o755);
    assert.equal(findServer("jumpseat", places, extension), join(bin, "jumpseat"));
    assert.equal(findServer("/mine/jumpseat", places, extension), "/mine/jumpseat");
  } finally {
    rmSync(folder, { recursive: true });
  }
});

test("what is started and where prompts go is set for the machine, and not by a folder", () => {
  const { contributes } = JSON.parse(readFileSync("package.json", "utf8"));
  const settings: Record<string, { scope?: string }> = contributes.configuration.properties;
  const own = Object.entries(settings).flatMap(([name, one]) => (one.scope === "machine" ? [name] : []));
  assert.deepEqual(own, ["jumpseat.path", "jumpseat.arguments", "jumpseat.environment", "jumpseat.model"]);
});
