// The views of the page, with what a person does in each.

import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { join } from "node:path";
import { launch, openPage, Server, shot, show } from "./support.mjs";
import { PIXEL, PROMPTS } from "./story.mjs";

let server, browser, page, story;

before(async () => {
  server = await Server.start({ prompts: PROMPTS });
  story = await server.client.create(null, { workingDirectory: server.work, requestPermission: true });
  await server.client.approveAll(story, "Write a function that makes slugs of titles, with accents kept, and test it.");
  browser = await launch();
  page = await openPage(browser, server);
});

after(async () => {
  const problems = page?.problems ?? [];
  await browser?.close();
  await server?.stop();
  assert.deepEqual(problems, []);
});

const row = (selector, options) => page.locator(`.transcript ${selector}`, options);
const composer = () => page.getByRole("textbox", { name: "Prompt" });

async function send(text) {
  await composer().fill(text);
  await page.keyboard.press("Enter");
}

/** Begin a session in the page; returns its id. */
async function fresh() {
  await page.goto(`${server.origin}/#/new`);
  await page.getByLabel(/^Folder/).fill(server.work);
  await page.getByRole("button", { name: "Begin" }).click();
  await composer().waitFor();
  return /session\/([^/]+)/.exec(page.url())[1];
}

test("the list has the session with its state, its model, its tokens and its cost", async () => {
  const entry = page.locator(".entry", { hasText: "Write a function that makes slugs" });
  await entry.getByText("$0.0").waitFor();
  assert.match(await entry.innerText(), /open[^]*\$0\.\d\d · 2\dk tokens · large · project/);
  await page.getByRole("searchbox", { name: "Search sessions" }).fill("no such words");
  await page.getByText("No session matches.").waitFor();
  await page.getByRole("searchbox", { name: "Search sessions" }).fill("slugs project");
  await entry.click();
  await page.getByRole("searchbox", { name: "Search sessions" }).fill("");
  await page.getByRole("heading", { level: 1, name: /slugs of titles/ }).waitFor();
});

test("a stranger reads from the facts what the session cost, what was slow, what was approved, and why it stopped", async () => {
  await show(page, story);
  const facts = await page.locator(".fact").evaluateAll((all) => all.map((one) => one.textContent));
  const fact = (name) => facts.find((one) => one.startsWith(`${name}: `)) ?? "";
  assert.match(fact("Cost"), /^Cost: \$0\.0\d+; 7 model calls$/);
  assert.match(fact("Time"), /^Time: [^;]*model [^;]*, tools [^;]*; slowest tool: bash, \d\.\d s$/);
  assert.match(fact("Decisions"), /^Decisions: \d approved; by a person$/);
  assert.match(fact("Tokens"), /% from the cache$/);
  assert.match(fact("Context"), /context \d+%$/);
  assert.equal(fact("Why it stopped"), "Why it stopped: Finished");
});

test("the transcript shows Markdown, folded reasoning, calls with exit code and output, side-by-side diffs and a sub-agent", async () => {
  await show(page, story);
  await row(".markdown table").first().waitFor();
  await row(".hljs-keyword").first().waitFor();
  await shot(page, "transcript-end");
  await page.locator(".transcript").evaluate((box) => { box.scrollTop = 0; });
  // Reasoning and calls that are as usual are in one line.
  const steps = row("details.steps", { hasText: "bash" }).first();
  assert.match(await steps.locator("> summary").innerText(), /bash, sql[^]*ls -la[^]*2 calls/);
  assert.equal(await row(".call", { hasText: "ls -la" }).count(), 0);
  await steps.locator("> summary").press("Enter");
  await row(".thought summary").waitFor();
  assert.equal(await row(".thought .markdown").count(), 0);
  await row(".thought summary").click();
  await row(".thought .markdown").getByText("I look at it first").waitFor();
  const list = row(".call", { hasText: "ls -la" }).first();
  await list.locator("summary").click();
  await list.getByText("exit code 0").waitFor();
  await list.getByText("Approved by a person, once").waitFor();
  await shot(page, "transcript-begin");
  const change = row("details.call", { has: page.locator(".tool:text-is('edit')") });
  await change.scrollIntoViewIfNeeded();
  assert.match(await change.locator("tr.line-changed td.side-old").innerText(), /return re\.sub\(r'\[\^a-z\]/);
  assert.ok((await change.locator("tr.line-changed td.side-new mark").count()) > 0);
  assert.match(await change.locator("tr.line-added td.side-new").innerText(), /unicodedata/);
  await shot(page, "transcript-diff");
  await page.locator(".transcript").evaluate((box) => { box.scrollTop = box.scrollHeight; });
  const agent = row("details.call", { has: page.locator(".tool:text-is('scout')") });
  await agent.scrollIntoViewIfNeeded();
  await agent.locator("summary").first().click();
  await agent.getByText("Only slug.py mentions it.").waitFor();
  await agent.locator(".call", { hasText: "slugify" }).first().waitFor();
  await row(".badge.bad", { hasText: "exit 1" }).first().waitFor();
  await shot(page, "transcript-agent");
});

test("the head of a run is in sight from the beginning, also in a large window", async () => {
  await page.setViewportSize({ width: 2560, height: 900 });
  for (const view of ["new", `session/${story}/usage`]) {
    await page.goto(`${server.origin}/#/${view}`);
    await show(page, story);
    await page.locator(".stuck-head", { hasText: "1/1 Write a function" }).waitFor();
  }
  await page.setViewportSize({ width: 1440, height: 900 });
});

test("the todos of the model are above the prompt", async () => {
  await show(page, story);
  await page.getByText("Todos 1/3").click();
  await page.locator(".todos .in_progress", { hasText: "Write slugify" }).waitFor();
  await page.getByText("Todos 1/3").click();
});

test("the timeline names what took longest, and has a bar with a label for each part, which leads to the transcript", async () => {
  await show(page, story, "timeline");
  const bars = page.locator(".lane.part");
  await bars.first().waitFor();
  const longest = page.getByRole("region", { name: "What took longest" }).getByRole("button");
  assert.match((await longest.allInnerTexts()).join("\n"), /^\d\.\d s\s+bash ls -la && sleep 1/);
  const names = await bars.evaluateAll((all) => all.map((one) => one.textContent));
  assert.ok(names.some((name) => /^model .*large \d+ ms, model, first token after/.test(name)), names.join("\n"));
  assert.ok(names.some((name) => /^bash\d .*ls -la && sleep 1 \d\.\d s, tools/.test(name)), names.join("\n"));
  assert.ok(names.some((name) => /^wait .*waited .*: run ls -la/.test(name)));
  assert.ok(names.some((name) => /^scout .*, sub-agents/.test(name)));
  // No label is cut that has room elsewhere: of the bars with short subjects, all are whole.
  const cut = await page.locator(".lane.part .lane-label").evaluateAll((all) => all.filter((one) => one.textContent.length < 30 && one.scrollWidth > one.clientWidth + 1).map((one) => one.textContent));
  assert.deepEqual(cut, []);
  await shot(page, "timeline");
  const before = await page.locator(".tick").allInnerTexts();
  await page.getByRole("button", { name: "Zoom in" }).click();
  await page.keyboard.press("+");
  assert.notDeepEqual(await page.locator(".tick").allInnerTexts(), before);
  await page.keyboard.press("0");
  assert.deepEqual(await page.locator(".tick").allInnerTexts(), before);
  const box = await page.locator(".lane-ruler .lane-track").boundingBox();
  await page.mouse.move(box.x + box.width * 0.1, box.y + 10);
  await page.mouse.down();
  await page.mouse.move(box.x + box.width * 0.4, box.y + 10);
  await page.mouse.up();
  await page.getByRole("button", { name: "Fit" }).click();
  assert.deepEqual(await page.locator(".tick").allInnerTexts(), before);
  await page.getByRole("button", { name: "Table" }).click();
  await page.getByRole("row", { name: /bash ls -la && sleep 1 .* 1$/ }).waitFor();
  await page.getByRole("button", { name: "Table" }).click();
  await bars.filter({ hasText: "create" }).first().click();
  await page.locator(".target .call", { hasText: "create" }).waitFor();
});

test("the plots show tokens by part, cost and context with legends, and the numbers by run and by call are tables", async () => {
  await show(page, story, "usage");
  for (const title of ["Tokens of each call", "Context", "Cost so far"]) {
    await page.getByRole("img", { name: new RegExp(`^${title}`) }).locator("canvas").waitFor();
  }
  const legends = await page.locator(".plot-legend").allInnerTexts();
  assert.match(legends[0].replace(/\s+/g, " "), /^cached input 15k new input 7\.\dk output \d+ all calls$/);
  assert.ok(legends.every((text) => !text.includes("--")), legends.join("\n"));
  const plot = await page.locator(".plot canvas").first().boundingBox();
  await page.mouse.move(plot.x + plot.width * 0.2, plot.y + plot.height / 2);
  await page.locator(".plot-legend", { hasText: /call \d/ }).first().waitFor();
  await page.getByRole("table", { name: "By run" }).getByRole("row", { name: /1: Write a function .* 7 .* \$0\.04/ }).waitFor();
  await page.getByText("All 7 model calls as a table").click();
  await page.locator(".all-calls tbody tr").nth(6).waitFor();
  assert.equal(await page.locator(".all-calls tbody tr").count(), 7);
  assert.equal(await page.locator(".all-calls tbody tr", { hasText: "scout" }).count(), 2);
  await page.getByText("All 7 model calls as a table").click();
  await shot(page, "usage");
});

test("the log has the decisions with who decided and what nobody was asked about, and exports them", async () => {
  await show(page, story, "decisions");
  await page.locator("nav.tabs a[aria-current=page]", { hasText: "Log" }).waitFor();
  const verdicts = page.locator(".verdict");
  assert.match((await verdicts.first().innerText()).replace(/\s+/g, " "), /approved run ls -la && sleep 1 a person, once after/);
  await verdicts.filter({ hasText: "sql INSERT" }).filter({ hasText: "not asked" }).filter({ hasText: "needs no approval" }).waitFor();
  await shot(page, "decisions");
  const download = page.waitForEvent("download");
  await page.getByRole("button", { name: "Export" }).click();
  const file = readFileSync(await (await download).path(), "utf8");
  assert.match(file, /^time,|^"time","decision","what","by","rule","feedback","after_ms"\r\n"[^"]+","approved","run ls -la && sleep 1","a person, once"/);
});

test("each row leads to its event on the wire, which can be filtered and copied as a step", async () => {
  const context = page.context();
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  await show(page, story);
  await page.locator(".transcript").evaluate((box) => { box.scrollTop = 0; });
  await row(".prompt", { hasText: "Write a function that makes slugs" }).locator(".wire-link").click();
  await page.locator(".wire-line.chosen", { hasText: "user.message" }).waitFor();
  await page.locator(".wire-detail pre", { hasText: '"messageId"' }).waitFor();
  await shot(page, "wire");
  await page.getByRole("button", { name: "Copy as a step" }).click();
  assert.match(await page.evaluate(() => navigator.clipboard.readText()), /^- events:\n {4}- \{"type":"user\.message"/);
  await page.locator(".wire-line", { hasText: "tool.execution_complete" }).filter({ hasText: "bash ls -la && sleep 1" }).filter({ hasText: "exit 0 · " }).waitFor();
  await page.locator(".wire-line", { hasText: "permission.completed" }).filter({ hasText: "approved by a person, once: run ls -la" }).first().waitFor();
  await page.getByRole("combobox", { name: "Topic" }).selectOption({ label: "Questions and decisions" });
  const names = await page.locator(".wire-name").allInnerTexts();
  assert.ok(names.length > 2 && names.every((name) => name.startsWith("permission.")), names.join());
  await page.getByRole("button", { name: "Messages" }).click();
  await page.getByRole("combobox", { name: "Topic" }).selectOption("");
  await page.getByRole("searchbox", { name: "Filter" }).fill("connect");
  await page.locator(".wire-line", { hasText: "connect" }).first().click();
  assert.match(await page.locator(".wire-detail pre").innerText(), /\[redacted\]/);
});

test("an answer streams into the transcript, a prompt steers it, and it can be stopped", async () => {
  await fresh();
  await send("Count slowly");
  await row(".streaming", { hasText: "word3" }).waitFor();
  await shot(page, "streaming");
  await composer().fill("Go faster");
  await page.getByRole("button", { name: "Steer" }).waitFor();
  await page.getByRole("button", { name: "Queue" }).click();
  await page.getByText("Waiting: “Go faster”").waitFor();
  await page.getByRole("button", { name: "Stop" }).click();
  await row(".note", { hasText: "Stopped by a person" }).waitFor();
  await page.getByText("Stopped by a person", { exact: true }).first().waitFor();
  await page.locator(".fact.bad", { hasText: "Stopped by a person" }).waitFor();
});

test("an approval says what it grants; a denial with a reason reaches the model", async () => {
  const id = await fresh();
  await send("Please install it");
  const question = page.getByRole("region", { name: "A question to you" });
  await question.getByRole("heading", { name: "Run this command?" }).waitFor();
  await question.locator("pre", { hasText: "touch installed" }).waitFor();
  await question.getByRole("button", { name: "More ways to allow" }).click();
  await question.getByRole("button", { name: /Allow for this session\s*touch/ }).waitFor();
  await shot(page, "approval");
  await question.getByRole("button", { name: /^Deny/ }).click();
  await question.getByRole("textbox").fill("Use a virtual environment");
  await question.getByRole("button", { name: "Deny, and tell the model" }).click();
  await row(".answer", { hasText: "Use a virtual environment" }).waitFor();
  assert.equal(existsSync(join(server.work, "installed")), false);
  await send("Then install again");
  await question.getByRole("button", { name: "More ways to allow" }).click();
  await question.getByRole("button", { name: /^Change it first/ }).click();
  const args = question.getByRole("textbox", { name: "Arguments of the call, as JSON" });
  await args.fill("[]");
  await question.getByRole("button", { name: "Allow this changed call once" }).click();
  await question.getByText("expected a JSON object").waitFor();
  await args.fill(JSON.stringify({ command: "echo changed by hand" }));
  await question.getByRole("button", { name: "Allow this changed call once" }).click();
  await row(".answer", { hasText: "changed by hand" }).waitFor();
  await send("And install once more");
  await question.getByRole("button", { name: "More ways to allow" }).click();
  await question.getByRole("button", { name: /^Allow for this session/ }).click();
  await row(".answer", { hasText: "The result was: installed" }).waitFor();
  assert.equal(existsSync(join(server.work, "installed")), true);
  await show(page, id, "decisions");
  const texts = await page.locator(".verdict").allInnerTexts();
  assert.match(texts[0], /denied[^]*a person in the page[^]*“Use a virtual environment”/);
  assert.match(texts[2], /approved[^]*a person in the page, for this session\s+rule: commands: touch/);
  await page.getByRole("heading", { name: "Approvals in force" }).waitFor();
  await page.getByRole("button", { name: "Revoke" }).first().click();
  await page.getByRole("heading", { name: "Approvals in force" }).waitFor({ state: "detached" });
});

test("a question of the model has its choices as buttons", async () => {
  await fresh();
  await send("Ask me which colour");
  const question = page.getByRole("region", { name: "A question to you" });
  await question.getByRole("button", { name: "Red" }).waitFor();
  await shot(page, "question");
  await question.getByRole("button", { name: "Blue" }).click();
  await row(".answer", { hasText: "Blue" }).waitFor();
});

test("a picture is attached, sent and shown; the model is switched", async () => {
  const id = await fresh();
  await page.locator("input[type=file]").setInputFiles({ name: "pixel.png", mimeType: "image/png", buffer: Buffer.from(PIXEL, "base64") });
  await page.getByRole("button", { name: "Remove pixel.png" }).waitFor();
  await page.getByRole("combobox", { name: "Model" }).selectOption("demo/small");
  await row(".note", { hasText: "Model: demo/small" }).waitFor();
  await send("What is in this picture?");
  await row(".prompt img[alt='pixel.png']").waitFor();
  await row(".answer", { hasText: "A red pixel." }).waitFor();
  const { data } = await server.client.call("sessions.readPersistedEvents", { sessionId: id }).then(({ events }) => events.find((event) => event.type === "user.message"));
  assert.equal(data.attachments[0].data, PIXEL);
});

test("a session is forked before a prompt and rewound with its files", async () => {
  const id = await fresh();
  await send("One");
  await row(".answer", { hasText: "You said: One" }).waitFor();
  await send("Please make a note");
  await page.getByRole("button", { name: /^Allow once/ }).click();
  await row(".answer", { hasText: "Noted." }).waitFor();
  assert.equal(existsSync(join(server.work, "note.txt")), true);
  const second = row(".prompt", { hasText: "Please make a note" });
  await second.getByRole("button", { name: "Actions for this prompt" }).click();
  await page.getByRole("menuitem", { name: "Fork from here" }).click();
  await page.waitForURL((url) => !url.hash.includes(id));
  await row(".answer", { hasText: "You said: One" }).waitFor();
  assert.equal(await row(".prompt").count(), 1);
  await page.getByText("No server has this session open").waitFor();
  await shot(page, "stored");
  await page.getByRole("button", { name: "Continue here" }).click();
  await send("Two");
  await row(".answer", { hasText: "You said: Two" }).waitFor();
  await show(page, id);
  await second.getByRole("button", { name: "Actions for this prompt" }).click();
  await page.getByRole("menuitem", { name: /Rewind/ }).click();
  const dialog = page.getByRole("dialog");
  await dialog.getByText("note.txt").waitFor();
  await dialog.getByRole("button", { name: "Rewind the conversation" }).waitFor();
  await shot(page, "rewind");
  await dialog.getByRole("button", { name: "Rewind, with the files" }).click();
  await second.waitFor({ state: "detached" });
  assert.equal(await row(".prompt").count(), 1);
  assert.equal(existsSync(join(server.work, "note.txt")), false);
});

test("a session is exported as Markdown and as JSON lines", async () => {
  await show(page, story);
  for (const [item, check] of [["Export as Markdown", (text) => /^# Write a function[^]*\*\*bash\*\* `ls -la && sleep 1`/.test(text)], ["Export as JSON lines", (text) => text.trim().split("\n").every((line) => JSON.parse(line).type)]]) {
    await page.getByRole("button", { name: "Actions for this session" }).click();
    const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("menuitem", { name: item }).click()]);
    assert.ok(check(readFileSync(await download.path(), "utf8")), item);
  }
});

test("two sessions are compared side by side", async () => {
  const small = await server.client.create(null, { workingDirectory: server.work, requestPermission: true, model: "demo/small" });
  await server.client.approveAll(small, "Write a function that makes slugs of titles, quickly.");
  await show(page, story);
  await page.getByRole("button", { name: "Actions for this session" }).click();
  await page.getByRole("menuitem", { name: "Compare with another session" }).click();
  await page.getByRole("combobox", { name: "Right" }).selectOption(small);
  await page.getByRole("region", { name: "Right transcript" }).waitFor();
  const cost = page.locator(".compare-facts tr", { hasText: "Cost" });
  assert.match(await cost.innerText(), /\$0\.0\d+\s+\$0\.00\d+\s+−\d\d%/);
  await shot(page, "compare");
});

test("a new session is begun in a folder", async () => {
  await page.getByRole("link", { name: "New" }).click();
  await page.getByLabel(/^Folder/).fill(server.work);
  await page.getByRole("combobox", { name: "Model" }).selectOption("demo/small");
  await shot(page, "new");
  await page.getByRole("button", { name: "Begin" }).click();
  await send("Hello there");
  await row(".answer", { hasText: "You said: Hello there" }).waitFor();
});

test("the page is used with the keyboard alone", async () => {
  await page.goto(`${server.origin}/#/`);
  await page.getByRole("heading", { name: "Sessions" }).waitFor();
  await page.keyboard.press("/");
  await page.keyboard.type("slugs of titles, with accents");
  for (let at = 0; at < 6 && !(await page.evaluate(() => document.activeElement.classList.contains("entry"))); at++) await page.keyboard.press("Tab");
  await page.keyboard.press("Enter");
  await page.getByRole("heading", { level: 1, name: /slugs of titles/ }).waitFor();
  await page.locator("#prompt").waitFor();
  await page.keyboard.press("i");
  await page.keyboard.type("From the keyboard");
  await page.keyboard.press("Enter");
  await row(".answer", { hasText: "You said: From the keyboard" }).waitFor();
});
