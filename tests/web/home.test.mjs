// The overview, search, new sessions, the set-up of models, deleting and logging out; and how little long texts cost.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { launch, openPage, Server, shot, show } from "./support.mjs";
import { PROMPTS } from "./story.mjs";

let browser;
before(async () => { browser = await launch(); });
after(async () => { await browser.close(); });

const prompt = (page) => page.getByRole("textbox", { name: "Prompt" });
const usage = { input: 1000, output: 200, cache_read: 0 };

test("the overview begins sessions by typing, and shows what asks, what runs, and what was spent by day and model", async () => {
  const server = await Server.start({ prompts: [...PROMPTS, { when: "cheap", turns: [{ text: "Cheap.", usage }] }] });
  try {
    const page = await openPage(browser, server);
    for (const model of ["demo/large", "demo/small"]) await server.client.prompt(await server.client.create(null, { workingDirectory: server.work, model }), `Something cheap with ${model}`);
    const asks = await server.client.create(null, { workingDirectory: server.work, requestPermission: true });
    await server.client.call("session.send", { sessionId: asks, prompt: "Please install it" });
    await server.client.event(asks, "permission.requested");
    const runs = await server.client.create(null, { workingDirectory: server.work });
    await server.client.call("session.send", { sessionId: runs, prompt: "Then hang" });
    await page.goto(`${server.origin}/#/new`);
    await page.goto(`${server.origin}/#/`);
    await page.locator(".home-group.needs", { hasText: "Please install it" }).waitFor();
    await page.locator(".home-group", { hasText: "Running (1)" }).getByText("Then hang").waitFor();
    const models = page.getByRole("region", { name: "By model" });
    assert.match(await models.innerText(), /large\s+1\.2k\s+\d+\s+\$0\.0060[^]*small\s+1\.2k\s+\d+\s+\$0\.0004/);
    assert.match(await page.getByRole("region", { name: "By day" }).innerText(), /20\d\d-\d\d-\d\d\s+2\.4k/);
    await page.getByRole("combobox", { name: "Model" }).locator("optgroup[label='Not connected'] option", { hasText: /anthropic/i }).waitFor({ state: "attached" });
    await shot(page, "home");
    await page.getByLabel(/^Folder/).fill(server.work);
    const box = page.getByRole("textbox", { name: "What should the agent do?" });
    await box.fill("Begun by typing");
    await page.reload();
    assert.equal(await box.inputValue(), "Begun by typing");
    await page.getByRole("button", { name: "Begin" }).and(page.locator(":enabled")).waitFor();
    await box.press("Enter");
    await page.locator(".answer", { hasText: "You said: Begun by typing" }).waitFor();
    assert.equal(await page.locator(".transcript .prompt").count(), 1);
    await page.getByRole("link", { name: "jumpseat", exact: true }).click();
    assert.equal(await box.inputValue(), "");
    assert.deepEqual(page.problems, []);
  } finally {
    await server.stop();
  }
});

test("a search marks its hits; a session ends as finished, is deleted after a question, and the browser is logged out in all tabs", async () => {
  const server = await Server.start({ prompts: PROMPTS });
  try {
    const page = await openPage(browser, server);
    const one = await server.client.create([{ text: "The word is Quetzalcoatlus." }], { workingDirectory: server.work });
    await server.client.prompt(one, "An animal, please");
    await page.getByRole("searchbox", { name: "Search sessions" }).fill("quetzal animal");
    await page.locator(".list .entry-title mark", { hasText: /^animal$/ }).waitFor();
    await page.locator(".list .entry", { hasText: "An animal, please" }).click();
    await page.getByRole("searchbox", { name: "Search sessions" }).fill("");
    await show(page, one);
    const other = await page.context().newPage();
    await other.goto(`${server.origin}/#/session/${one}`);
    await other.locator(".answer", { hasText: "Quetzalcoatlus" }).waitFor();
    await page.getByRole("button", { name: "Actions for this session" }).click();
    await page.getByRole("menuitem", { name: "Delete…" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Delete" }).click();
    await page.getByRole("heading", { level: 1, name: "Sessions" }).waitFor();
    await page.locator(".list .entry", { hasText: "An animal, please" }).waitFor({ state: "detached" });
    assert.deepEqual((await server.client.call("session.list")).sessions, []);
    await page.getByRole("button", { name: "Log out" }).click();
    await page.getByLabel("Connection token").waitFor();
    await page.reload();
    await page.getByLabel("Connection token").waitFor();
    await other.reload();
    await other.getByLabel("Connection token").waitFor();
  } finally {
    await server.stop();
  }
});

test("without a model, the page connects one: a server of one's own is added, tried and chosen", async () => {
  const provider = createServer((request, response) => {
    response.setHeader("content-type", "application/json");
    const answer = request.url.endsWith("/models")
      ? { object: "list", data: [{ id: "lab-model", object: "model" }] }
      : { id: "1", object: "chat.completion", model: "lab-model", choices: [{ index: 0, finish_reason: "stop", message: { role: "assistant", content: "Hi" } }], usage: { prompt_tokens: 1, completion_tokens: 1, total_tokens: 2 } };
    request.resume().on("end", () => response.end(JSON.stringify(answer)));
  });
  await new Promise((resolve) => provider.listen(0, "127.0.0.1", resolve));
  const server = await Server.start({ config: "" });
  try {
    const page = await openPage(browser, server);
    await page.getByText("No model is connected yet").waitFor();
    await page.locator(".providers li", { hasText: "Anthropic" }).getByText("needs a key").first().waitFor();
    await shot(page, "setup");
    await page.getByText("Another server").click();
    await page.getByLabel("Name").fill("lab");
    await page.getByLabel("Address").fill(`http://127.0.0.1:${provider.address().port}/v1`);
    await page.getByRole("button", { name: "Add it" }).click();
    const lab = page.locator(".providers li", { has: page.locator("strong", { hasText: /^lab$/ }) });
    // A page that is left earlier takes its request with it.
    await page.getByText("No model is connected yet").waitFor({ state: "detached" });
    await page.goto(`${server.origin}/#/setup`);
    await lab.waitFor();
    if ((await lab.locator("select").count()) === 0) await lab.locator("summary").click();
    await lab.getByRole("combobox", { name: "Model" }).selectOption("lab-model");
    await lab.getByRole("button", { name: "Use it" }).click();
    await page.getByRole("option", { name: "the default: lab/lab-model" }).waitFor({ state: "attached" });
    assert.deepEqual(page.problems, []);
  } finally {
    provider.close();
    await server.stop();
  }
});

test("of a streaming answer, only the last block is rendered again; a prompt of 10,000 lines is folded, as is an answer of 2 MB", async () => {
  const paragraphs = Array.from({ length: 30 }, (_, at) => `Paragraph **${at}** of the answer, with \`code\`.\n\n`);
  const server = await Server.start({
    prompts: [
      { when: "paragraphs", turns: [{ deltas: paragraphs.flatMap((one) => [one.slice(0, 20), one.slice(20)]), delay_ms: 20 }] },
      { when: "What is this", turns: [{ text: "Ten thousand lines." }] },
      { when: "slowly", turns: [{ deltas: Array.from({ length: 200 }, (_, at) => `Line ${at} of it.\n\n`), delay_ms: 20 }] },
      { when: "links", turns: [{ deltas: [...Array.from({ length: 100 }, () => `${"See [the page][one] for more. ".repeat(20)}\n\n`), "[one]: https://example.org/one\n"], delay_ms: 2 }] },
      { when: "huge", turns: [{ deltas: Array.from({ length: 11 }, () => "**word** in a row\n\n".repeat(10_000)) }] },
      ...PROMPTS,
    ],
  });
  try {
    const page = await openPage(browser, server);
    const id = await server.client.create(null, { workingDirectory: server.work });
    await show(page, id);
    await page.evaluate(() => {
      globalThis.changes = new Map();
      new MutationObserver((all) => {
        for (const { target } of all) globalThis.changes.set(target, (globalThis.changes.get(target) ?? 0) + 1);
      }).observe(document.body, { childList: true, subtree: true });
    });
    await prompt(page).fill("Write paragraphs");
    await prompt(page).press("Enter");
    await page.locator(".answer .markdown:not(.streaming)", { hasText: "Paragraph 29" }).waitFor();
    const blocks = page.locator(".answer .markdown .part > div");
    const changes = await blocks.evaluateAll((all) => all.map((block) => globalThis.changes.get(block)));
    assert.ok(changes.length > 1, `${changes.length} blocks`);
    // Not even the end of the answer renders them again.
    assert.deepEqual(changes.filter((times) => times !== 1), []);
    assert.deepEqual((await blocks.allTextContents()).filter((text) => text.trim() === ""), []);
    assert.equal(await page.locator(".answer .markdown p").count(), 30);

    await prompt(page).fill("What is this?");
    await prompt(page).evaluate((box) => {
      const clipboardData = new DataTransfer();
      clipboardData.setData("text/plain", "x\n".repeat(10_000));
      box.dispatchEvent(new ClipboardEvent("paste", { clipboardData, bubbles: true, cancelable: true }));
    });
    await page.getByRole("button", { name: "Remove pasted text, 10,001 lines" }).waitFor();
    assert.equal(await prompt(page).inputValue(), "What is this?");
    await prompt(page).press("Enter");
    const folded = page.locator(".transcript .prompt", { hasText: "What is this?" });
    await folded.getByRole("button", { name: /^Show all: 10,00\d lines/ }).waitFor();
    assert.ok((await folded.boundingBox()).height < 900);
    await page.locator(".answer", { hasText: "Ten thousand lines." }).waitFor();

    // Updates come between the keys of a person, but they do come.
    await prompt(page).fill("Write slowly");
    await prompt(page).press("Enter");
    const growing = page.locator(".answer .markdown.streaming");
    await growing.waitFor();
    const lengths = new Set();
    for (let key = 0; key < 20; key++) {
      await prompt(page).press("x");
      lengths.add(await growing.evaluate((answer) => answer.textContent.length));
    }
    assert.ok(lengths.size > 2, `${lengths.size} lengths`);
    assert.equal(await prompt(page).inputValue(), "x".repeat(20));
    await page.getByRole("button", { name: "Stop" }).click();
    await page.getByRole("button", { name: "Send" }).waitFor();

    // Long answers have a height of their own, out of sight as well, and links that are defined at their end.
    await prompt(page).fill("Many links");
    await prompt(page).press("Enter");
    await page.locator(".answer .markdown:not(.streaming) a[href='https://example.org/one']").last().waitFor({ state: "attached" });
    await page.waitForFunction(() => [...document.querySelectorAll(".answer")].at(-1).querySelectorAll("a[href='https://example.org/one']").length === 2000);
    const heights = () => page.locator(".answer").last().locator(".part").evaluateAll((parts) => parts.map((part) => part.offsetHeight));
    assert.ok((await heights()).length > 5);
    assert.deepEqual((await heights()).filter((height) => height < 100), []);

    await prompt(page).fill("Something huge");
    await prompt(page).press("Enter");
    await page.locator(".answer").last().getByRole("button", { name: /^Show all: 220,001 lines/ }).waitFor();
    const elements = await page.evaluate(() => document.querySelectorAll("*").length);
    assert.ok(elements < 3000, `${elements} elements`);
  } finally {
    await server.stop();
  }
});
