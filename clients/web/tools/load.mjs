// Measure the page under load, in a real Chromium against the real server: `node clients/web/tools/load.mjs`; with
// words, only the parts whose names have one of them. The times are those of this machine, on the clock of the page:
// those of this program would include its own work in the page. The load average is printed with them.

import { randomUUID } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { loadavg } from "node:os";
import { join } from "node:path";
import { call, launch, openPage, Server, show } from "../../../tests/web/support.mjs";

const EVENTS = 20_000;
const SESSIONS = 2000;
const OTHERS = 1000;
const FILES = 500;
const ROUNDS = 5;
const KEYS = 80;
const FRAMES = 90;
const DAY_MS = 86_400_000;
const PARAGRAPH = "The parser reads **one block** after the other, with `code` and [a link](https://example.org).\n\n- one\n- two\n\n```python\nprint(1)\n```\n\n";

const STREAM = PARAGRAPH.repeat(600);
const PROMPTS = [
  { when: "stream", turns: [{ deltas: Array.from({ length: Math.ceil(STREAM.length / 8) }, (_, at) => STREAM.slice(at * 8, at * 8 + 8)), delay_ms: 1 }] },
  { when: "files", turns: Array.from({ length: FILES / 50 }, (_, turn) => ({ tool_calls: Array.from({ length: 50 }, (_, at) => call("create", { path: `file-${turn}-${at}.py`, file_text: `print(${at})\n`.repeat(20) }, `file-${turn}-${at}`)) })).concat({ text: "Written." }) },
  { when: "large", turns: [{ deltas: Array.from({ length: 40 }, () => PARAGRAPH.repeat(Math.ceil(50_000 / PARAGRAPH.length))), delay_ms: 20 }] },
];

function writeSession(server, turns, name, ended = Date.now()) {
  const id = randomUUID();
  const folder = join(server.folder, "home/session-state", id);
  mkdirSync(folder, { recursive: true });
  let parentId = null;
  let time = ended - 3_600_000;
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
  console.log(`${what.padEnd(52)} ${text}  (load ${loadavg()[0].toFixed(1)})`);
}

/** Return a value of sorted numbers: 0.5 is the median. */
const at = (sorted, share) => sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * share))];
const sort = (numbers) => [...numbers].sort((one, other) => one - other);

/** Note in each document of a page when its first rows and the whole session are shown: in a frame, not only there. */
function watchLoads(page) {
  return page.addInitScript(() => {
    const seen = globalThis.seen = {};
    const note = (name) => {
      seen[name] ??= 0;
      if (seen[name] === 0) requestAnimationFrame(() => setTimeout(() => { seen[name] ||= Math.round(performance.now()); }));
    };
    new MutationObserver(() => {
      if (document.querySelector(".transcript .answer")) note("rows");
      const state = document.querySelector(".session-head .pill");
      if (state && state.textContent !== "loading") note("whole");
    }).observe(document, { childList: true, subtree: true, characterData: true });
  });
}

/** Open a session in a new document; returns the times of its first rows and of the whole, in milliseconds since the navigation. */
async function load(page, server, id) {
  await page.goto("about:blank");
  await page.goto(`${server.origin}/#/session/${id}/transcript`);
  // Each look takes the page time.
  for (;;) {
    await page.waitForTimeout(1000);
    const seen = await page.evaluate(() => globalThis.seen);
    if (seen.whole) return seen;
  }
}

/** Go to another view of the page; returns the time until a frame shows an element of it. */
function visit(page, hash, selector) {
  return page.evaluate(([to, wanted]) => new Promise((resolve, reject) => {
    const begun = performance.now();
    const look = () => {
      if (performance.now() - begun > 20_000) reject(new Error(`no ${wanted}: ${document.querySelector("#main")?.textContent.slice(-300)}`));
      else if (document.querySelector(wanted)) setTimeout(() => resolve(Math.round(performance.now() - begun)));
      else requestAnimationFrame(look);
    };
    location.hash = to;
    requestAnimationFrame(look);
  }), [hash, selector]);
}

/** Scroll a list by some rows in each frame; returns the times of the frames, sorted. */
function scroll(page, selector) {
  return page.evaluate(([list, frames]) => new Promise((resolve) => {
    const box = document.querySelector(list);
    const by = box.scrollTop > 0 ? -400 : 400;
    const times = [];
    const step = (time) => {
      times.push(time);
      box.scrollTop += by;
      if (times.length <= frames) requestAnimationFrame(step);
      else resolve(times.slice(1).map((one, place) => Math.round(one - times[place])).sort((one, other) => one - other));
    };
    requestAnimationFrame(step);
  }), [selector, FRAMES]);
}

async function reportView(page, what, hash, shown, list) {
  const first = await visit(page, hash, shown);
  const frames = list ? await scroll(page, list) : null;
  const nodes = await page.evaluate(() => document.querySelectorAll("*").length);
  report(what, `first rows ${first} ms${frames ? `, scrolling: frames of ${at(frames, 0.5)} ms, 95 % ${at(frames, 0.95)} ms` : ""}, ${nodes} elements`);
}

/** Make the window so large that all of the page is in it: what is outside is drawn later, and measured as late. */
async function enlarge(page) {
  const session = await page.context().newCDPSession(page);
  const { windowId } = await session.send("Browser.getWindowForTarget");
  await session.send("Browser.setWindowBounds", { windowId, bounds: { width: 1600, height: 1100 } });
}

/** Type into a box; returns the times from the keys to the next frames, in milliseconds, sorted. */
async function type(page, box = "#prompt") {
  await page.locator(box).focus();
  await page.evaluate(() => {
    globalThis.keyTimes = [];
    globalThis.keyObserver?.disconnect();
    globalThis.keyObserver = new PerformanceObserver((list) => {
      for (const entry of list.getEntries()) if (entry.name === "keydown") globalThis.keyTimes.push(entry.duration);
    });
    globalThis.keyObserver.observe({ type: "event", durationThreshold: 16 });
  });
  for (let key = 0; key < KEYS; key++) {
    await page.keyboard.press("x");
    await page.waitForTimeout(60);
  }
  await page.waitForTimeout(300);
  const slow = await page.evaluate(() => globalThis.keyTimes);
  // Faster ones are not reported.
  return sort([...Array.from({ length: Math.max(0, KEYS - slow.length) }, () => 16), ...slow]);
}

const showKeys = (times) => `median ${at(times, 0.5)} ms, 95 % ${at(times, 0.95)} ms, longest ${times.at(-1)} ms`;

const PARTS = {
  /** A session of 20,000 events, in a server with 2,000 others. */
  async session(page, server) {
    const long = writeSession(server, Math.ceil(EVENTS / 12), "A very long session");
    for (let number = 0; number < SESSIONS; number++) writeSession(server, 1, `Session ${number}`, Date.now() - number * DAY_MS / 20);
    await watchLoads(page);
    const loads = [];
    for (let round = 0; round < ROUNDS + 1; round++) loads.push(await load(page, server, long.id));
    report(`${long.events} events, opened first`, `first rows ${loads[0].rows} ms, whole ${loads[0].whole} ms`);
    const [rows, whole] = ["rows", "whole"].map((name) => sort(loads.slice(1).map((one) => one[name])));
    report(`${long.events} events, median of ${ROUNDS}`, `first rows ${at(rows, 0.5)} ms (${rows[0]} to ${rows.at(-1)}), whole ${at(whole, 0.5)} ms (${whole[0]} to ${whole.at(-1)})`);
    const at20k = `#/session/${long.id}`;
    report("scrolling it", `frames of ${at(await scroll(page, ".transcript"), 0.5)} ms`);
    await reportView(page, `log of ${long.events} events`, `${at20k}/wire`, ".wire-line", ".wire-lines");
    report("typing a filter of it", showKeys(await type(page, ".wire-head input[type=search]")));
    await reportView(page, `timeline of ${2 * Math.ceil(EVENTS / 12)} calls`, `${at20k}/timeline`, ".lane.run", ".lane-list");
    await reportView(page, "its usage", `${at20k}/usage`, ".usage", null);
    await reportView(page, `home with ${SESSIONS} sessions`, "#/", ".home-group, .sums-table", ".list");
    report("typing a search there", showKeys(await type(page, ".sidebar input[type=search]")));
  },

  async changes(page, server) {
    const id = await server.client.create(null, { workingDirectory: server.work, requestPermission: true });
    await server.client.approveAll(id, "files");
    await show(page, id);
    await reportView(page, `changes of ${FILES} files`, `#/session/${id}/changes`, ".tree-file", ".tree");
  },

  async typing(page, server) {
    const id = await server.client.create(null, { workingDirectory: server.work });
    await show(page, id);
    report("typing, nothing else", showKeys(await type(page)));
    const other = await server.client.create(null, { workingDirectory: server.work });
    void server.client.call("session.send", { sessionId: other, prompt: "stream" });
    report("typing, while 1,000 deltas a second come elsewhere", showKeys(await type(page)));
    await server.client.call("session.abort", { sessionId: other });
    await page.locator("#prompt").fill("");
    void server.client.call("session.send", { sessionId: id, prompt: "stream" });
    await page.locator(".streaming").waitFor();
    report("typing, while they are shown", showKeys(await type(page)));
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
    const folded = await server.client.create(null, { workingDirectory: server.work });
    await show(page, folded);
    await server.client.call("session.send", { sessionId: folded, prompt: "A line of a long prompt\n".repeat(10_000) });
    await page.locator(".answer").waitFor();
    report("typing below a prompt of 10,000 lines", showKeys(await type(page)));
  },

  async usage(page, server) {
    for (let number = 0; number < OTHERS; number++) writeSession(server, 1, `Session ${number}`);
    for (const round of ["first", "again"]) {
      const from = Date.now();
      const { usage } = await server.client.call("jumpseat.web.usage", { days: 30 });
      report(`usage of all sessions (${round})`, `${Date.now() - from} ms, ${usage.reduce((sum, one) => sum + one.calls, 0)} calls`);
    }
  },
};

const words = process.argv.slice(2);
const browser = await launch();
try {
  for (const [name, measure] of Object.entries(PARTS)) {
    if (words.length > 0 && !words.some((word) => name.includes(word))) continue;
    const server = await Server.start({ prompts: PROMPTS });
    try {
      const page = await openPage(browser, server);
      await enlarge(page);
      await measure(page, server);
      await page.context().close();
    } finally {
      await server.stop();
    }
  }
} finally {
  await browser.close();
}
