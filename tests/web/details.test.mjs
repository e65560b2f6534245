// What people do by hand, and small things that they see: pictures that are pasted and dropped, colours, tables, arguments.

import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { after, before, test } from "node:test";
import { call, launch, openPage, Server, shot, show } from "./support.mjs";
import { PIXEL, PROMPTS } from "./story.mjs";

const TABLE = "| name | size | state |\n|---|--:|:-:|\n| a | 12 | ok |\n\n- [x] done\n- [ ] open\n\n1. one\n\n`<b>` and <script>alert(1)</script>";
const OLD = "def nowhere():\n    return 1\n";
const WANTED = [
  call("edit", { path: "slug.py", old_str: OLD, new_str: OLD.replace("1", "2") }),
  call("sql", { query: "SELECT wrong\nFROM nowhere" }),
  call("view", { path: "missing.py", view_range: [1, 20] }),
];
let server, browser, page;

before(async () => {
  server = await Server.start({ prompts: [...PROMPTS, { when: "a table", turns: [{ text: TABLE }] }, { when: "fail", turns: [{ tool_calls: WANTED }, { text: "Nothing worked." }] }] });
  writeFileSync(join(server.work, "slug.py"), "import re\n");
  browser = await launch();
  page = await openPage(browser, server, { colorScheme: "light", permissions: ["clipboard-read", "clipboard-write"] });
});

after(async () => {
  const problems = page?.problems ?? [];
  await browser?.close();
  await server?.stop();
  assert.deepEqual(problems, []);
});

const create = () => server.client.create(null, { workingDirectory: server.work, requestPermission: true });
const composer = () => page.getByRole("textbox", { name: "Prompt" });

test("a picture of the clipboard is pasted, a file is dropped beside the box, and both are sent", async () => {
  const id = await create();
  await show(page, id);
  await page.evaluate((data) => navigator.clipboard.write([new ClipboardItem({ "image/png": new Blob([Uint8Array.from(atob(data), (one) => one.charCodeAt(0))], { type: "image/png" }) })]), PIXEL);
  await composer().focus();
  await page.keyboard.press("Control+V");
  await page.locator(".composer .attachments img").waitFor();
  const file = join(server.folder, "dropped.txt");
  writeFileSync(file, "from the desktop\n");
  const cdp = await page.context().newCDPSession(page);
  // In the transcript: the browser would leave the page for the file.
  for (const type of ["dragEnter", "dragOver", "drop"]) await cdp.send("Input.dispatchDragEvent", { type, x: 700, y: 300, data: { items: [], files: [file], dragOperationsMask: 1 } });
  await page.getByRole("button", { name: "Remove dropped.txt" }).waitFor();
  await composer().fill("What is in this picture?");
  await composer().press("Enter");
  await page.locator(".prompt .attachments img").waitFor();
  const { events } = await server.client.call("sessions.readPersistedEvents", { sessionId: id });
  const { attachments } = events.find((event) => event.type === "user.message").data;
  assert.deepEqual(attachments.map((one) => [one.type, one.mimeType ?? ""]), [["blob", "image/png"], ["blob", "text/plain"]]);
  assert.equal(Buffer.from(attachments[1].data, "base64").toString(), "from the desktop\n");
});

test("the colours are those of the system, or chosen for this browser, in all tabs and after a reload", async () => {
  const background = (of = page) => of.evaluate(() => getComputedStyle(document.body).backgroundColor);
  const dark = "rgb(21, 23, 27)";
  assert.equal(await background(), "rgb(255, 255, 255)");
  const other = await page.context().newPage();
  await other.goto(`${server.origin}/`);
  await other.getByText(/^Connected/).waitFor({ state: "attached" });
  await page.getByLabel("Colours").selectOption("dark");
  assert.equal(await background(), dark);
  await other.waitForFunction((wanted) => getComputedStyle(document.body).backgroundColor === wanted, dark);
  await other.close();
  await page.reload();
  await page.getByText(/^Connected/).waitFor({ state: "attached" });
  assert.equal(await background(), dark);
  await page.getByLabel("Colours").selectOption("system");
  assert.equal(await background(), "rgb(255, 255, 255)");
  await page.emulateMedia({ colorScheme: "dark" });
  assert.equal(await background(), dark);
  await page.emulateMedia({ colorScheme: "light" });
});

test("columns are aligned as the table says, tasks have boxes without bullets, and an export runs nothing", async () => {
  const id = await create();
  await server.client.prompt(id, "Make a table");
  await show(page, id);
  const style = (selector, name) => page.locator(`.answer ${selector}`).evaluate((one, of) => getComputedStyle(one)[of], name);
  assert.deepEqual([await style("td:nth-child(2)", "textAlign"), await style("th:nth-child(2)", "textAlign"), await style("td:nth-child(3)", "textAlign")], ["right", "right", "center"]);
  assert.equal(await style("ul li:first-child", "listStyleType"), "none");
  await page.getByRole("button", { name: "Actions for this session" }).click();
  const [download] = await Promise.all([page.waitForEvent("download"), page.getByRole("menuitem", { name: "Export as Markdown" }).click()]);
  const text = readFileSync(await download.path(), "utf8");
  assert.match(text, /`<b>` and &lt;script>/);
  await shot(page, "table");
});

test("what a failed call was asked to do is shown as a change, a query and values, not as JSON", async () => {
  const id = await create();
  await server.client.approveAll(id, "Fail, please");
  await show(page, id);
  const edit = page.locator(".row.call.failed", { hasText: "slug.py" }).first();
  await edit.locator(".diff.unplaced .side-old", { hasText: "return 1" }).waitFor();
  await edit.locator(".diff.unplaced .side-new", { hasText: "return 2" }).waitFor();
  // Where it would be in the file is not known.
  assert.equal(await edit.locator("td.number:visible").count(), 0);
  const calls = page.locator(".row.call.failed");
  assert.match(await calls.filter({ hasText: "SELECT wrong" }).locator("pre.code").innerText(), /^SELECT wrong\nFROM nowhere$/);
  await calls.filter({ hasText: "missing.py" }).locator(".values", { hasText: "1, 20" }).waitFor();
  assert.equal(await page.locator(".call-body", { hasText: "old_str" }).count(), 0);
  await shot(page, "failed-calls");
});
