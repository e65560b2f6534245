// Measure the page under load, in a real Chromium against the real server: `node clients/web/tools/load.mjs`.
// The times are those of this machine; the load average is printed with them.

import { randomUUID } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { loadavg } from "node:os";
import { join } from "node:path";
import { launch, openPage, Server, show } from "../../../tests/web/support.mjs";

const EVENTS = 20_000;
const SESSIONS = 3000;
const KEYS = 40;
const PARAGRAPH = "The parser reads **one block** after the other, with `code` and [a link](https://example.org).\n\n- one\n- two\n\n```python\nprint(1)\n```\n\n";

const STREAM = PARAGRAPH.repeat(600);
const PROMPTS = [
  { when: "stream", turns: [{ deltas: Array.from({ length: Math.ceil(STREAM.length / 8) }, (_, at) => STREAM.slice(at * 8, at * 8 + 8)), delay_ms: 1 }] },
  { when: "large", turns: [{ deltas: Array.from({ length: 40 }, () => PARAGRAPH.repeat(Math.ceil(50_000 / PARAGRAPH.length))), delay_ms: 20 }] },
];

function writeSession(server, turns, name) {
  const id = randomUUID();
  const folder = join(server.folder, "home/session-state", id);
  mkdirSync(folder, { recursive: true });
  let parentId = null;
  let time = Date.now() - 3_600_000;
  const lines = [];
  const add = (type, data) => {
    const event = { id: randomUUID(), timestamp: new Date(time += 50).toISOString(), parentId, type, data };
    parentId = event.id;
    lines.push(JSON.stringify(event));
  };
  add("session.start", { sessionId: id, version: 1, producer: "jumpseat", copilotVersion: "0.2.0", startTime: new Date(time).toISOString(), context: { cwd: server.work } });
  for (let turn = 0; turn < turns; turn++) {
    add("user.message", { content: `Prompt ${turn}: look into part ${turn}`, messageId: randomUUID(), delivery: "idle" });
    for (let call = 0; call < 2; call++) {
      const toolCallId = `call-${turn}-${call}`;
      add("assistant.turn_start", { turnId: String(call) });
      add("assistant.message", { messageId: randomUUID(), content: `I look at **file ${call}**.`, model: "large", toolRequests: [{ toolCallId, name: "bash", arguments: { command: `cat file-${call}.txt` }, type: "function" }] });
      add("tool.execution_start", { toolCallId, toolName: "bash", arguments: { command: `cat file-${call}.txt` } });
      add("tool.execution_complete", { toolCallId, success: true, result: { content: `${"line of the file\n".repeat(5)}<exited with exit code 0>` } });
      add("assistant.turn_end", { turnId: String(call) });
    }
    add("assistant.message", { messageId: randomUUID(), content: `Part ${turn} is fine:\n\n- one\n- two\n\n\`\`\`python\nprint(${turn})\n\`\`\``, model: "large" });
  }
  writeFileSync(join(folder, "events.jsonl"), `${lines.join("\n")}\n`);
  const iso = JSON.stringify(new Date(time).toISOString());
  const used = JSON.stringify(JSON.stringify({ large: { calls: 3, input_tokens: 900, output_tokens: 100, cache_read_tokens: 0, cache_write_tokens: 0, reasoning_tokens: 0, dollars: 0.01 } }));
  writeFileSync(join(folder, "workspace.yaml"), `id: ${JSON.stringify(id)}\ncwd: ${JSON.stringify(server.work)}\ncreated_at: ${iso}\nupdated_at: ${iso}\nsummary: ${JSON.stringify(name)}\nanswered: true\nusage: ${used}\n`);
  return { id, events: lines.length };
}

function report(what, text) {
  console.log(`${what.padEnd(44)} ${text}  (load ${loadavg()[0].toFixed(1)})`);
}

/** Type into the prompt box; returns the times from the keys to the next frames, in milliseconds, sorted. */
async function type(page) {
  await page.locator("#prompt").focus();
  await page.evaluate(() => {
    globalThis.keyTimes = [];
    globalThis.keyObserver?.disconnect();
    globalThis.keyObserver = new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) if (entry.name === "keydown") globalThis.keyTimes.push(entry.duration);
    });
    globalThis.keyObserver.observe({ type: "event", durationThreshold: 16 });
  });
  for (let at = 0; at < KEYS; at++) {
    await page.keyboard.press("x");
    await page.waitForTimeout(60);
  }
  await page.waitForTimeout(300);
  const slow = await page.evaluate(() => globalThis.keyTimes);
  // Faster ones are not reported.
  return [...Array.from({ length: Math.max(0, KEYS - slow.length) }, () => 16), ...slow].sort((one, other) => one - other);
}

const showKeys = (times) => `median ${times[times.length >> 1]} ms, 95 % ${times[Math.floor(times.length * 0.95)]} ms, longest ${times.at(-1)} ms`;

const browser = await launch();
const server = await Server.start({ prompts: PROMPTS });
try {
  const long = writeSession(server, Math.ceil(EVENTS / 12), "A very long session");
  const page = await openPage(browser, server);
  for (const round of ["first", "again"]) {
    await page.goto("about:blank");
    const begun = Date.now();
    await page.goto(`${server.origin}/#/session/${long.id}/transcript`);
    await page.locator(".transcript .answer").last().waitFor();
    const first = Date.now() - begun;
    await page.locator(".session-head .pill:not(:text-is('loading'))").waitFor();
    report(`${long.events} events, from a new page (${round})`, `first rows ${first} ms, whole ${Date.now() - begun} ms`);
  }

  const id = await server.client.create(null, { workingDirectory: server.work });
  await show(page, id);
  report("typing, nothing else", showKeys(await type(page)));
  await page.locator("#prompt").fill("");
  void server.client.call("session.send", { sessionId: id, prompt: "stream" });
  await page.locator(".streaming").waitFor();
  report("typing, while 1,000 deltas a second come", showKeys(await type(page)));
  await page.locator("#prompt").fill("");
  await server.client.call("session.abort", { sessionId: id });
  const large = await server.client.create(null, { workingDirectory: server.work });
  await show(page, large);
  const begun = Date.now();
  void server.client.call("session.send", { sessionId: large, prompt: "large" });
  await page.locator(".answer").waitFor({ timeout: 60_000 });
  report("an answer of 2 MB", `is seen after ${Date.now() - begun} ms`);
  report("typing, while it comes", showKeys(await type(page)));
  await page.locator(".answer .markdown:not(.streaming)").waitFor({ timeout: 60_000 });
  await page.locator("#prompt").fill("");
  report("typing below it", showKeys(await type(page)));
  const nodes = await page.evaluate(() => document.querySelectorAll(".transcript *").length);
  report("its elements", String(nodes));

  for (let at = 0; at < SESSIONS; at++) writeSession(server, 1, `Session ${at}`);
  for (const round of ["first", "again"]) {
    const from = Date.now();
    const { usage } = await server.client.call("jumpseat.web.usage", { days: 30 });
    report(`usage of ${SESSIONS} sessions (${round})`, `${Date.now() - from} ms, ${usage.reduce((sum, one) => sum + one.calls, 0)} calls`);
  }
  const from = Date.now();
  await page.goto("about:blank");
  await page.goto(`${server.origin}/#/`);
  await page.locator(".sums-table").first().waitFor();
  report(`home with ${SESSIONS} sessions`, `${Date.now() - from} ms, ${await page.evaluate(() => document.querySelectorAll("*").length)} elements`);
} finally {
  await browser.close();
  await server.stop();
}
