// Killed servers, sessions of other processes, and very long sessions.

import assert from "node:assert/strict";
import { randomUUID } from "node:crypto";
import { mkdirSync, writeFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { join } from "node:path";
import { launch, openPage, Server, show, shot } from "./support.mjs";
import { PROMPTS } from "./story.mjs";

let browser;
before(async () => { browser = await launch(); });
after(async () => { await browser.close(); });

test("the page connects again to a server that was killed and started again, and goes on", async () => {
  let server = await Server.start({ prompts: PROMPTS });
  try {
    const page = await openPage(browser, server);
    const id = await server.client.create(null, { workingDirectory: server.work, requestPermission: true });
    await server.client.prompt(id, "First");
    await server.client.call("session.send", { sessionId: id, prompt: "Please install it" });
    await show(page, id);
    await page.getByRole("button", { name: /^Allow once/ }).waitFor();
    await server.kill();
    await page.getByText("The server has gone.").waitFor();
    await shot(page, "lost");
    server = await Server.start({ folder: server.folder, webPort: server.webPort });
    await page.getByText("The server has gone.").waitFor({ state: "detached" });
    await page.getByText("No server has this session open").waitFor();
    assert.equal(await page.getByRole("region", { name: "A question to you" }).count(), 0);
    await page.locator(".fact.bad", { hasText: "Unfinished: the server ended during a call" }).waitFor();
    await page.getByRole("button", { name: "Continue here" }).click();
    await page.getByRole("textbox", { name: "Prompt" }).fill("And on");
    await page.keyboard.press("Enter");
    await page.locator(".answer", { hasText: "You said: And on" }).waitFor();
    await page.reload();
    await page.locator(".answer", { hasText: "You said: And on" }).waitFor();
  } finally {
    await server.stop();
  }
});

test("a session that another process has open is shown, and cannot be changed", async () => {
  const server = await Server.start({ prompts: PROMPTS });
  const viewer = await Server.start({ folder: server.folder });
  try {
    const id = await server.client.create(null, { workingDirectory: server.work });
    await server.client.prompt(id, "Hello from elsewhere");
    const page = await openPage(browser, viewer, {});
    await show(page, id);
    await page.getByText("Another process has this session open").waitFor();
    await page.locator(".answer", { hasText: "You said: Hello from elsewhere" }).waitFor();
    assert.equal(await page.locator("#prompt").count(), 0);
    assert.deepEqual(page.problems, []);
  } finally {
    await viewer.stop();
    await server.stop();
  }
});

/** Write the log of a session with some twenty thousand events. */
function writeLongSession(server) {
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
  const context = { cwd: server.work };
  add("session.start", { sessionId: id, version: 1, producer: "jumpseat", copilotVersion: "0.2.0", startTime: new Date(time).toISOString(), context });
  for (let turn = 0; lines.length < 20_000; turn++) {
    add("user.message", { content: `Prompt ${turn}: look into part ${turn}`, messageId: randomUUID(), delivery: "idle" });
    for (let call = 0; call < 3; call++) {
      add("assistant.turn_start", { turnId: String(call) });
      const toolCallId = `call-${turn}-${call}`;
      add("assistant.message", { messageId: randomUUID(), content: `I look at **file ${call}**.`, model: "large", toolRequests: [{ toolCallId, name: "bash", arguments: { command: `cat file-${call}.txt` }, type: "function" }] });
      add("tool.execution_start", { toolCallId, toolName: "bash", arguments: { command: `cat file-${call}.txt` } });
      add("tool.execution_complete", { toolCallId, success: true, result: { content: `${"line of the file\n".repeat(5)}<exited with exit code 0>` } });
      add("assistant.turn_end", { turnId: String(call) });
    }
    add("assistant.message", { messageId: randomUUID(), content: `Part ${turn} is fine:\n\n- one\n- two\n\n\`\`\`python\nprint(${turn})\n\`\`\``, model: "large" });
  }
  writeFileSync(join(folder, "events.jsonl"), `${lines.join("\n")}\n`);
  writeFileSync(join(folder, "workspace.yaml"), `id: ${id}\ncwd: ${server.work}\ncreated_at: ${new Date(time).toISOString()}\nupdated_at: ${new Date(time).toISOString()}\nsummary: A very long session\n`);
  return { id, events: lines.length };
}

test("a session with 20,000 events opens at its end, has few elements, and scrolls to its beginning", async (context) => {
  const server = await Server.start({ prompts: PROMPTS });
  try {
    const { id, events } = writeLongSession(server);
    const page = await openPage(browser, server);
    const begun = Date.now();
    await page.goto(`${server.origin}/#/session/${id}/transcript`);
    await page.locator(".transcript .answer").last().waitFor();
    context.diagnostic(`the end of ${events} events was shown after ${Date.now() - begun} ms`);
    await show(page, id);
    context.diagnostic(`all were read after ${Date.now() - begun} ms`);
    assert.match(await page.locator(".transcript .answer").last().innerText(), /Part \d+ is fine/);
    const elements = await page.evaluate(() => document.querySelectorAll(".transcript *").length);
    assert.ok(elements < 3000, `${elements} elements for ${events} events`);
    const frames = await page.locator(".transcript").evaluate((box) => new Promise((resolve) => {
      const times = [];
      const step = (time) => {
        times.push(time);
        box.scrollTop -= 600;
        if (times.length < 120) requestAnimationFrame(step);
        else resolve(times.slice(1).map((one, at) => one - times[at]).sort((one, other) => one - other));
      };
      requestAnimationFrame(step);
    }));
    context.diagnostic(`while scrolling, the median frame took ${frames[60].toFixed(1)} ms, the 95th percentile ${frames[113].toFixed(1)} ms`);
    await page.locator(".transcript").evaluate((box) => { box.scrollTop = 0; });
    await page.locator(".transcript .prompt", { hasText: "Prompt 0:" }).waitFor();
    await show(page, id, "wire");
    await page.locator(".wire-line").first().waitFor();
    await show(page, id, "timeline");
    const runs = page.locator(".lane.run");
    await runs.first().waitFor();
    await page.getByText(/^1,\d{3} runs/).waitFor();
    const drawn = await page.evaluate(() => document.querySelectorAll(".lane-list *").length);
    assert.ok(drawn < 1500, `${drawn} elements for the runs`);
    await runs.first().focus();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("ArrowRight");
    await page.locator('.lane.part[data-item="3"]', { hasText: "cat file-0.txt" }).waitFor();
    assert.match(await page.locator(":focus").innerText(), /2\s+Prompt 1/);
    await page.keyboard.press("ArrowLeft");
    await page.locator(".lane.part").first().waitFor({ state: "detached" });
    await shot(page, "timeline-long");
    await page.getByRole("region", { name: "What took longest" }).getByRole("button").last().click();
    await page.locator(".lane.part.chosen").waitFor();
    await show(page, id, "decisions");
    await page.locator(".verdict").first().waitFor();
    const listed = await page.evaluate(() => document.querySelectorAll(".verdicts *").length);
    assert.ok(listed < 1500, `${listed} elements for the decisions`);
    assert.deepEqual(page.problems, []);
  } finally {
    await server.stop();
  }
});
