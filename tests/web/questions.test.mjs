// Questions that were asked before the page was opened: of the model, plans and forms; and who has answered.

import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { spawn } from "node:child_process";
import { join } from "node:path";
import { call, Client, launch, openPage, ROOT, Server, shot, show } from "./support.mjs";
import { PROMPTS } from "./story.mjs";

const PLAN = { summary: "Two steps", actions: ["interactive", "autopilot", "exit_only"], recommendedAction: "interactive" };
const SCHEMA = {
  type: "object", required: ["name", "size"],
  properties: {
    name: { type: "string", title: "Name", description: "Of the package" }, size: { type: "integer", title: "Size" },
    kind: { type: "string", enum: ["app", "lib"], enumNames: ["Application", "Library"], title: "Kind" }, tested: { type: "boolean", title: "With tests" }, note: { type: "string", title: "Note" },
  },
};
const EVERYTHING = { requestUserInput: true, requestElicitation: true, requestExitPlanMode: true, requestPermission: true, clientName: "script" };

let server, browser, page;

before(async () => {
  server = await Server.start({ prompts: [...PROMPTS, { when: "plan it", turns: [{ tool_calls: [call("exit_plan_mode", PLAN, "plan")] }, { text: "Decided: {{last_tool_result}}" }] }] });
  browser = await launch();
  page = await openPage(browser, server);
});

after(async () => {
  const problems = page?.problems ?? [];
  await browser?.close();
  await server?.stop();
  assert.deepEqual(problems, []);
});

const question = () => page.getByRole("region", { name: "A question to you" });
const answer = (text) => page.locator(".transcript .answer", { hasText: text }).last();
const create = () => server.client.create(null, { workingDirectory: server.work, ...EVERYTHING });

test("a question of the model that another client was asked is shown, and answered in the page", async () => {
  const id = await create();
  await server.client.call("session.send", { sessionId: id, prompt: "Ask me which colour" });
  await server.client.event(id, "user_input.requested");
  await page.goto(`${server.origin}/#/`);
  await page.reload();
  await page.locator(".entry .pill", { hasText: "asks you" }).waitFor();
  await show(page, id);
  await question().getByRole("button", { name: "Red" }).waitFor();
  await question().getByRole("textbox").fill("Green");
  await question().getByRole("button", { name: "Answer" }).click();
  await answer("Green").waitFor();
  await question().waitFor({ state: "detached" });
});

test("a plan that another client was asked about is shown, and decided in the page", async () => {
  const id = await create();
  await server.client.call("session.mode.set", { sessionId: id, mode: "plan" });
  await server.client.call("session.plan.update", { sessionId: id, content: "# The plan\n\n1. Look\n2. **Change**" });
  await server.client.call("session.send", { sessionId: id, prompt: "Plan it" });
  await server.client.event(id, "exit_plan_mode.requested");
  await show(page, id);
  await question().locator("strong", { hasText: "Change" }).waitFor();
  await shot(page, "plan");
  await question().getByRole("textbox", { name: "What should change" }).fill("Test it, too");
  await question().getByRole("button", { name: "No" }).click();
  await answer("Test it, too").waitFor();
  await server.client.call("session.send", { sessionId: id, prompt: "Plan it again" });
  await question().getByRole("button", { name: /and ask before each change/ }).click();
  await answer("interactive mode").waitFor();
  await page.locator(".note", { hasText: "The plan was approved" }).waitFor();
});

test("a form that another client was asked to show is filled in and sent from the page", async () => {
  const id = await create();
  const result = server.client.call("session.ui.elicitation", { sessionId: id, message: "About the package", requestedSchema: SCHEMA });
  await server.client.event(id, "elicitation.requested");
  await show(page, id);
  await question().getByText("About the package").waitFor();
  await question().getByLabel("Name (required)").fill("tool");
  await question().getByLabel("Size (required)").fill("7");
  await question().getByLabel("Kind").selectOption("Library");
  await question().getByLabel("With tests").check();
  await shot(page, "form");
  await question().getByRole("button", { name: "Send" }).click();
  assert.deepEqual(await result, { action: "accept", content: { name: "tool", size: 7, kind: "lib", tested: true } });
  await question().waitFor({ state: "detached" });
  const declined = server.client.call("session.ui.elicitation", { sessionId: id, message: "Once more, with your password", requestedSchema: SCHEMA });
  await question().getByText("Forms are not for passwords").waitFor();
  assert.equal(await question().getByLabel("Size (required)").getAttribute("type"), "number");
  await question().getByRole("button", { name: "Decline" }).click();
  assert.equal((await declined).action, "decline");
});

test("the decisions name the clients in which they were made", async () => {
  const id = await create();
  const other = await Client.open(server.port, "sesame");
  await other.call("session.resume", { sessionId: id, disableResume: true, requestPermission: true, clientName: "jumpseat.nvim" });
  await other.call("session.send", { sessionId: id, prompt: "Please install it" });
  const { data } = await other.event(id, "permission.requested");
  await other.call("session.permissions.handlePendingPermissionRequest", { sessionId: id, requestId: data.requestId, result: { kind: "approve-once" } });
  await show(page, id);
  await answer("The result was: installed").waitFor();
  await page.getByRole("textbox", { name: "Prompt" }).fill("And install once more");
  await page.keyboard.press("Enter");
  await question().getByRole("button", { name: "More ways to allow" }).click();
  await question().getByRole("button", { name: /^Allow for this session/ }).click();
  await page.locator(".fact", { hasText: "2 approved; by a person in Neovim and a person in the page" }).waitFor();
  await show(page, id, "decisions");
  const texts = (await page.locator(".verdict").allInnerTexts()).filter((text) => !text.includes("not asked"));
  assert.match(texts[0], /approved[^]*a person in Neovim, once/);
  assert.match(texts[1], /approved[^]*a person in the page, for this session\s+rule: commands: /);
  await shot(page, "deciders");
  other.close();
});

test("sessions are found by words of their prompts and answers, with the place", async () => {
  const id = await create();
  await server.client.prompt(id, "Tell me of pelicans, and of their beaks");
  await server.client.call("session.name.set", { sessionId: id, name: "Birds" });
  await page.goto(`${server.origin}/#/`);
  await page.reload();
  await page.locator(".entry", { hasText: "Birds" }).waitFor();
  await page.getByRole("searchbox", { name: "Search sessions" }).fill("BEAKS pelicans");
  await page.locator(".entry", { hasText: "Birds" }).getByText("Tell me of pelicans, and of their beaks").waitFor();
  assert.equal(await page.locator(".sidebar .entry").count(), 1);
  await shot(page, "search");
  await page.getByRole("searchbox", { name: "Search sessions" }).fill("pelicans and penguins");
  await page.getByText("No session matches.").waitFor();
});

test("a model that is rate limited is exchanged after a question", async () => {
  const provider = spawn(join(ROOT, ".venv/bin/python"), ["-m", "tests.web.limited_model"], { cwd: ROOT, stdio: ["pipe", "pipe", "inherit"] });
  let limited;
  try {
    const environ = JSON.parse(await new Promise((resolve) => provider.stdout.once("data", resolve)));
    limited = await Server.start({ environ });
    const id = await limited.client.create(null, { workingDirectory: limited.work, gitHubToken: "token-of-alice", model: "by-chat", requestAutoModeSwitch: true });
    await limited.client.call("session.send", { sessionId: id, prompt: "Hello" });
    await limited.client.event(id, "auto_mode_switch.requested");
    const other = await openPage(browser, limited);
    await show(other, id);
    const asked = other.getByRole("region", { name: "A question to you" });
    await asked.getByText("The model is rate limited (user_weekly_rate_limited)").waitFor();
    await shot(other, "switch");
    await asked.getByRole("button", { name: "Yes", exact: true }).click();
    await other.locator(".note", { hasText: "Model: auto" }).waitFor();
    await other.locator(".transcript .answer").last().waitFor();
    assert.deepEqual(other.problems, []);
  } finally {
    await limited?.stop();
    provider.stdin.end();
  }
});
