// Reading a session, deciding, and its changes: as a stranger does, in small windows, and with the keyboard alone.

import assert from "node:assert/strict";
import { existsSync, readFileSync, writeFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { join } from "node:path";
import { call, launch, openPage, Server, shot, show } from "./support.mjs";
import { PROMPTS } from "./story.mjs";

const LONG = `${"long-name-without-a-break-".repeat(6)}/file.py`;
const LINES = Array.from({ length: 80 }, (_, at) => `line ${at} of a file whose lines are long enough to be wrapped in small windows`);
const FOUR = [
  call("bash", { command: "touch one", description: "One" }, "one"), call("create", { path: LONG, file_text: `${LINES.join("\n")}\nthe last line\n` }, "two"),
  call("bash", { command: "touch three", description: "Three" }, "three"), call("bash", { command: "touch four", description: "Four" }, "four"),
];
const ASKING = [
  { when: "four things", turns: [{ tool_calls: FOUR }, { text: "All of it is done." }] },
  { when: "side by side", turns: [{ tool_calls: Array.from({ length: 4 }, (_, at) => call("view", { path: at < 3 ? "." : "nowhere" }, `v${at}`)) }, { text: "I have looked." }] },
  { when: "ask and wait", turns: [{ tool_calls: [call("ask_user", { question: "How long?", choices: ["Long"] }, "ask")] }, { text: "Thanks." }] },
  { when: "two files", turns: [
    { tool_calls: [call("create", { path: "src/deep/new.py", file_text: "one\n" }, "n1"), call("edit", { path: "old.txt", old_str: "before", new_str: "between" }, "n2")] },
    { tool_calls: [call("edit", { path: "old.txt", old_str: "between", new_str: "after" }, "n3")] }, { text: "Both are changed." },
  ] },
  { when: "hebrew", turns: [{ text: "שלום, זו התשובה:\n\n1. אחת\n2. שתיים\n\n```python\nprint(1)\n```\n\n[https://good.example/login](https://evil.example/login) [a](https://good.example) [file](src/app.py)" }] },
];

let server, browser, page, story;

before(async () => {
  server = await Server.start({ prompts: [...ASKING, ...PROMPTS] });
  story = await create();
  await server.client.approveAll(story, "Write a function that makes slugs of titles, with accents kept, and test it.");
  await server.client.approveAll(story, "Look side by side");
  await server.client.prompt(story, `A prompt of many lines\n${"more\n".repeat(3000)}`);
  browser = await launch();
  page = await openPage(browser, server, { viewport: { width: 1280, height: 800 } });
});

after(async () => {
  const problems = page?.problems ?? [];
  await browser?.close();
  await server?.stop();
  assert.deepEqual(problems, []);
});

const create = () => server.client.create(null, { workingDirectory: server.work, requestPermission: true, requestUserInput: true });
const question = () => page.getByRole("region", { name: "A question to you" });
const settled = () => question().locator("fieldset.decide:not([disabled])").waitFor();
const box = async (selector) => (await page.locator(selector).boundingBox()) ?? { x: 0, y: 0, width: 0, height: 0 };
const focused = () => page.evaluate(() => document.activeElement?.textContent || document.activeElement?.id);

/** Begin four things, of which the first three ask. */
async function askFour() {
  const id = await create();
  await server.client.call("session.send", { sessionId: id, prompt: "Do four things" });
  await server.client.event(id, "permission.requested");
  await show(page, id);
  await question().getByText("Question 1 of up to 4").waitFor();
  return id;
}

test("most of the window is for the transcript, whose heads stay in sight and are reached with j and k", async () => {
  await show(page, story);
  await page.locator(".run-foot").last().waitFor();
  assert.ok((await box(".transcript")).height >= 600, `${(await box(".transcript")).height} px of 800`);
  // At the end, the head of the last run is above its answer.
  await page.locator(".transcript").evaluate((list) => { list.scrollTop = 0; });
  await page.locator(".stuck-head").waitFor({ state: "detached" });
  await page.locator(".transcript").evaluate((list) => { list.scrollTop = 400; });
  await page.locator(".stuck-head", { hasText: "1/3 Write a function" }).waitFor();
  for (const [key, prompt] of [["j", "Look side by side"], ["k", "Write a function"], ["j", "Look side by side"], ["j", "A prompt of many lines"]]) {
    await page.keyboard.press(key);
    const heading = page.locator(".row.prompt", { hasText: prompt });
    await page.waitForFunction((text) => document.activeElement?.closest(".row.prompt")?.textContent.includes(text), prompt);
    const [head, list] = [await heading.boundingBox(), await box(".transcript")];
    assert.ok(head.y < list.y + list.height && head.y + head.height > list.y, `${prompt} at ${head.y}`);
  }
  // Thousands of lines of a prompt are folded.
  assert.ok((await box(".row.prompt:has-text('A prompt of many lines')")).height < 1400);
  await page.getByRole("button", { name: /^Show all: 3,002 lines/ }).waitFor();
});

test("a run ends with its time, tokens, cost and files; steps as usual are one line, and what is unusual is said", async () => {
  // Where the test before has scrolled to does not matter.
  await page.goto("about:blank");
  await page.goto(`${server.origin}/`);
  await show(page, story);
  await page.locator(".transcript").evaluate((list) => { list.scrollTop = 0; });
  await page.locator(".transcript [data-index='0']").waitFor();
  const text = await page.locator(".run-foot").first().innerText();
  assert.match(text, /s \(model [^)]*tools [^)]*waiting for you [^)]*\)[^]*23k in, 890 out[^]*\$0\.04[^]*slug\.py \+11 −0/);
  // Approvals are the ordinary case.
  assert.equal(await page.locator(".transcript .badge", { hasText: "approved" }).count(), 0);
  await page.locator(".transcript .badge.bad", { hasText: "exit 1" }).waitFor();
  await page.keyboard.press("j");
  const steps = page.locator("details.steps", { hasText: "view ×3" });
  await steps.locator("> summary").waitFor();
  // The call that failed is beside them, not among them.
  await page.locator(".row.call.failed", { hasText: "nowhere" }).waitFor();
  await steps.locator("> summary").click();
  assert.equal(await steps.locator(".call").count(), 3);
  await shot(page, "runs");
});

test("the times are the same live and after a reload, also for a question of the model", async () => {
  await page.goto(`${server.origin}/#/new`);
  await page.getByLabel(/^Folder/).fill(server.work);
  await page.getByRole("button", { name: "Begin" }).click();
  await page.getByRole("textbox", { name: "Prompt" }).fill("Please ask and wait");
  await page.keyboard.press("Enter");
  // The time of a question that is open grows.
  await page.locator(".fact", { hasText: /waiting for you [1-9]\.?\d* s/ }).waitFor();
  await question().getByRole("button", { name: "Long" }).click();
  await page.locator(".answer", { hasText: "Thanks." }).waitFor();
  await page.locator(".fact", { hasText: "Finished" }).waitFor();
  await page.locator(".run-foot:not(:has-text('so far'))").waitFor();
  // The page shows its own count until the server's has come: both tabs end with the latter.
  const again = await page.context().newPage();
  await again.goto(page.url());
  await again.locator(".run-foot").waitFor();
  const shown = (tab) => tab.evaluate(() => [document.querySelector(".run-foot")?.innerText, ...[...document.querySelectorAll(".fact")].map((one) => one.textContent).filter((text) => text.startsWith("Time:"))].join("\n"));
  const until = Date.now() + 10_000;
  let [live, reloaded] = ["", null];
  while (live !== reloaded && Date.now() < until) [live, reloaded] = [await shown(page), await shown(again)];
  assert.equal(live, reloaded);
  assert.match(live, /waiting for you \d/);
  await again.close();
});

test("questions are a queue: each says its place, denying stays where it is, and the keyboard decides", async () => {
  await askFour();
  assert.deepEqual(await question().locator(".queue li").allInnerTexts().then((all) => all.map((one) => one.split(/\s/)[0])), ["create", "bash", "bash"]);
  const deny = () => question().getByRole("button", { name: /^Deny/ }).boundingBox();
  const before = await deny();
  await page.locator("body").click({ position: { x: 640, y: 5 } });
  await question().locator("h2").focus();
  // Too early: the question has only just been seen.
  await settled();
  await page.keyboard.press("Alt+a");
  await question().getByText("Question 2 of up to 4").waitFor();
  await page.keyboard.press("Alt+a");
  await page.waitForFunction(() => document.activeElement?.tagName === "H2");
  assert.equal(await focused(), "Make this change?");
  assert.equal(existsSync(join(server.work, LONG)), false);
  await settled();
  assert.equal((await deny()).x, before.x);
  await page.keyboard.press("Alt+d");
  await question().getByRole("textbox").fill("Not this file");
  await settled();
  await page.keyboard.press("Alt+d");
  await question().getByText("Question 3 of up to 4").waitFor();
  assert.equal(existsSync(join(server.work, LONG)), false);
  await question().getByRole("button", { name: "More ways to allow" }).click();
  await question().getByRole("button", { name: /^Allow for this session/ }).click();
  await page.locator(".answer", { hasText: "All of it is done." }).waitFor();
  await page.locator(".transcript .badge.bad", { hasText: "denied" }).waitFor();
  await page.waitForFunction(() => document.activeElement?.id === "prompt");
});

test("where there is room, what is asked is beside the transcript, and decided there", async () => {
  await page.setViewportSize({ width: 2560, height: 1300 });
  await askFour();
  const [asked, transcript, prompt] = [await question().boundingBox(), await box(".transcript"), await page.locator("#prompt").boundingBox()];
  assert.ok(asked.x >= transcript.x + transcript.width && asked.x >= prompt.x + prompt.width, JSON.stringify([asked, transcript, prompt]));
  assert.ok(asked.width > 400 && transcript.height > 900);
  await settled();
  await page.keyboard.press("Alt+a");
  await question().getByText("Question 2 of up to 4").waitFor();
  // Below the other views, it stays below.
  await page.getByRole("link", { name: "Timeline", exact: true }).click();
  await page.locator(".dock.asking").getByRole("region", { name: "A question to you" }).waitFor();
  await page.setViewportSize({ width: 1280, height: 800 });
});

for (const [width, height, what] of [[320, 640, "a phone"], [640, 400, "a zoom of 200 %"], [300, 700, "a side bar"]]) {
  test(`the whole path and the whole change are read and decided in ${what}`, async () => {
    await askFour();
    await settled();
    await question().getByRole("button", { name: "Allow once" }).click();
    await question().getByText("Question 2 of up to 4").waitFor();
    await page.setViewportSize({ width, height });
    const name = question().locator(".diff-name code");
    assert.equal(await name.innerText(), LONG);
    await name.scrollIntoViewIfNeeded();
    const [path, asked] = [await name.boundingBox(), await box(".asked")];
    assert.ok(path.x >= asked.x && path.x + path.width <= asked.x + asked.width, `the path ends at ${path.x + path.width} of ${asked.x + asked.width}`);
    assert.ok(asked.height >= 100, `${asked.height} px for what is asked`);
    await question().getByRole("button", { name: "More below" }).waitFor();
    await page.locator(".asked").evaluate((one) => { one.scrollTop = one.scrollHeight; });
    await question().getByRole("button", { name: "More below" }).waitFor({ state: "detached" });
    const last = await question().locator("td", { hasText: "the last line" }).boundingBox();
    assert.ok(last.y >= asked.y && last.y + last.height <= asked.y + asked.height + 1 && last.x + last.width <= width, JSON.stringify(last));
    // Its buttons are in sight all the time.
    for (const button of [/^Deny/, "Allow once"]) {
      const place = await question().getByRole("button", { name: button }).boundingBox();
      assert.ok(place.y + place.height <= height && place.x + place.width <= width, JSON.stringify(place));
    }
    assert.ok(await page.evaluate(() => document.documentElement.scrollWidth <= innerWidth));
    await shot(page, `question-${width}x${height}`);
    await page.setViewportSize({ width: 1280, height: 800 });
  });
}

test("at a zoom of 200 % the transcript has half of the window", async () => {
  await page.setViewportSize({ width: 640, height: 400 });
  await show(page, story);
  await page.locator(".run-foot").last().waitFor();
  assert.ok((await box(".transcript")).height >= 180, `${(await box(".transcript")).height} px of 400`);
  await page.setViewportSize({ width: 1280, height: 800 });
});

test("the changes are a tree with the final diff of each file, and are taken back one by one", async () => {
  writeFileSync(join(server.work, "old.txt"), "before\nrest\n");
  const id = await create();
  await server.client.approveAll(id, "Change two files");
  await show(page, id, "changes");
  const tree = page.getByRole("navigation", { name: "Changed files" });
  await tree.getByText("src/deep/").waitFor();
  await tree.getByRole("button", { name: /old\.txt \+1 −1/ }).click();
  // What was there only in between is not in the final diff; "-" is before "+".
  const sides = await page.locator(".change-file td.text").evaluateAll((all) => all.map((one) => one.textContent));
  assert.ok(sides.indexOf("removed: before") < sides.indexOf("added: after") && !sides.some((one) => one.includes("between")), sides.join("|"));
  await page.setViewportSize({ width: 360, height: 740 });
  await page.waitForFunction(() => document.querySelectorAll(".change-file col").length === 2);
  const lines = await page.locator(".change-file tbody tr").evaluateAll((all) => all.map((one) => one.className));
  assert.deepEqual(lines.slice(0, 2), ["line-removed", "line-added"]);
  await shot(page, "changes-360");
  await page.setViewportSize({ width: 1280, height: 800 });
  await page.getByRole("button", { name: "Undo this file" }).click();
  await page.getByRole("button", { name: "Undo its changes" }).click();
  await page.getByText("1 file as before.").waitFor();
  assert.equal(readFileSync(join(server.work, "old.txt"), "utf8"), "before\nrest\n");
  assert.equal(existsSync(join(server.work, "src/deep/new.py")), true);
  await tree.getByRole("button", { name: /old\.txt/ }).waitFor({ state: "detached" });
  // Somebody else has changed the file meanwhile: it stays, with the reason.
  writeFileSync(join(server.work, "src/deep/new.py"), "mine\n");
  await page.getByRole("link", { name: "Transcript" }).click();
  await page.locator(".note", { hasText: "Undone: the changes of" }).waitFor();
  await page.getByRole("link", { name: "Changes" }).click();
  await page.getByText("It was changed since, and stays as it is.").waitFor();
  assert.equal(await page.getByRole("button", { name: "Undo this file" }).isDisabled(), true);
  await shot(page, "changes");
});

test("text from right to left is set so, code is not, and code is copied", async () => {
  await page.context().grantPermissions(["clipboard-read", "clipboard-write"]);
  const id = await create();
  await server.client.prompt(id, "Answer in hebrew בבקשה!");
  await show(page, id);
  const answer = page.locator(".answer .markdown");
  assert.equal(await answer.evaluate((one) => getComputedStyle(one).direction), "rtl");
  assert.equal(await answer.locator("pre").evaluate((one) => getComputedStyle(one).direction), "ltr");
  await answer.getByRole("button", { name: "Copy" }).click();
  assert.equal(await page.evaluate(() => navigator.clipboard.readText()), "print(1)");
  // A link says where it leads if its words say something else, and looks like one only if it leads somewhere.
  assert.deepEqual(await answer.locator("a").allInnerTexts(), ["https://good.example/login (evil.example)", "a", "file"]);
  assert.equal(await answer.locator("a").last().evaluate((one) => getComputedStyle(one).textDecorationLine), "none");
});

test("output of the user's own commands is not shown as markup", async () => {
  const id = await create();
  await server.client.prompt(id, "Explain it\n\n<user_command line=\"git status\">\nOn branch main\n[exit code 0]\n</user_command>");
  await show(page, id);
  await page.locator(".row.prompt", { hasText: "with the output of ! git status" }).waitFor();
  assert.equal(await page.locator(".row.prompt", { hasText: "user_command" }).count(), 0);
  assert.equal(await page.getByRole("heading", { level: 1 }).innerText(), "Explain it");
});
