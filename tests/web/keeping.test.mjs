// What a person types is never lost, and sent once, whatever happens to the page, the connection or the server.

import assert from "node:assert/strict";
import { createServer, connect } from "node:net";
import { after, before, test } from "node:test";
import { launch, openPage, Server, show, within } from "./support.mjs";
import { PIXEL, PROMPTS } from "./story.mjs";

let browser;
before(async () => { browser = await launch(); });
after(async () => { await browser.close(); });

/**
 * Forwards a port to that of a server. `hold` keeps what is sent, or only the answers, as a network that is gone;
 * `release` lets it go on, and `drop` loses it with its connections.
 */
async function network() {
  let port = 0;
  const sockets = new Set();
  const waiting = [];
  let held = { near: false, far: false };
  const server = createServer((near) => {
    const far = connect(port, "127.0.0.1");
    for (const [from, to, side] of [[near, far, "near"], [far, near, "far"]]) {
      sockets.add(from);
      from.on("error", () => undefined);
      from.on("close", () => to.destroy());
      from.on("data", (data) => (held[side] ? waiting.push(() => to.write(data)) : to.write(data)));
    }
  });
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  return {
    port: server.address().port,
    lead(to) { port = to; },
    hold(near = true) { held = { near, far: true }; },
    release() {
      held = { near: false, far: false };
      for (const send of waiting.splice(0)) send();
    },
    drop() {
      held = { near: false, far: false };
      waiting.length = 0;
      for (const socket of sockets) socket.destroy();
      sockets.clear();
    },
    close() {
      for (const socket of sockets) socket.destroy();
      server.close();
    },
  };
}

const prompt = (page) => page.getByRole("textbox", { name: "Prompt" });
const promptsOf = async (server, id) => (await server.client.call("session.getMessages", { sessionId: id })).events.filter((event) => event.type === "user.message").map((event) => event.data.content);

/** Start a server behind a network of its own, and open its page through it. */
async function behindNetwork() {
  const proxy = await network();
  const server = await Server.start({ prompts: PROMPTS, options: ["--ws-origin", `http://127.0.0.1:${proxy.port}`] });
  proxy.lead(server.webPort);
  const page = await openPage(browser, { address: () => server.address().replace(String(server.webPort), String(proxy.port)) });
  return { proxy, server, page };
}

test("a draft with its attachment survives tabs, sessions, a reload, and a server that starts again on another port", async () => {
  let server = await Server.start({ prompts: PROMPTS });
  try {
    const page = await openPage(browser, server);
    const [one, other] = [await server.client.create(null, { workingDirectory: server.work }), await server.client.create(null, { workingDirectory: server.work })];
    for (const id of [one, other]) await server.client.prompt(id, "First");
    await show(page, one);
    await prompt(page).fill("Half a thought");
    await page.locator("input[type=file]").setInputFiles({ name: "pixel.png", mimeType: "image/png", buffer: Buffer.from(PIXEL, "base64") });
    await page.getByRole("button", { name: "Remove pixel.png" }).waitFor();
    await page.getByRole("link", { name: "Timeline" }).click();
    await page.getByRole("link", { name: "Transcript" }).click();
    assert.equal(await prompt(page).inputValue(), "Half a thought");
    await show(page, other);
    assert.equal(await prompt(page).inputValue(), "");
    await show(page, one);
    assert.equal(await prompt(page).inputValue(), "Half a thought");
    await page.keyboard.press("End");
    await prompt(page).pressSequentially(" more");
    await page.reload();
    await page.getByRole("button", { name: "Remove pixel.png" }).waitFor();
    assert.equal(await prompt(page).inputValue(), "Half a thought more");
    // The server has the draft; the tab keeps none that another program on this port could read.
    await page.waitForFunction(() => sessionStorage.length === 0);
    await server.kill();
    server = await Server.start({ folder: server.folder });
    const later = await openPage(browser, server);
    await show(later, one);
    await later.getByRole("button", { name: "Continue here" }).click();
    await later.getByRole("button", { name: "Remove pixel.png" }).waitFor();
    assert.equal(await prompt(later).inputValue(), "Half a thought more");
    await later.keyboard.press("i");
    await later.keyboard.press("Enter");
    await later.locator(".answer", { hasText: "You said: Half a thought more" }).waitFor();
    await later.reload();
    await show(later, one);
    await later.locator(".answer", { hasText: "You said: Half a thought more" }).waitFor();
    assert.equal(await prompt(later).inputValue(), "");
  } finally {
    await server.stop();
  }
});

test("over a slow link, a prompt is sent once whatever is pressed, is seen as unsent, and what is typed after it stays", async () => {
  const { proxy, server, page } = await behindNetwork();
  try {
    const id = await server.client.create(null, { workingDirectory: server.work });
    await show(page, id);
    await prompt(page).fill("deploy it");
    proxy.hold();
    await prompt(page).press("Enter");
    await prompt(page).press("Enter");
    await page.locator(".unsent", { hasText: "deploy it" }).waitFor();
    await prompt(page).pressSequentially("and the docs");
    await prompt(page).press("Enter");
    assert.equal(await page.getByRole("button", { name: "Sending…" }).isDisabled(), true);
    proxy.release();
    await page.locator(".answer", { hasText: "You said: deploy it" }).waitFor();
    await page.locator(".unsent").waitFor({ state: "detached" });
    assert.equal(await prompt(page).inputValue(), "and the docs");
    assert.deepEqual(await promptsOf(server, id), ["deploy it"]);
    assert.deepEqual(page.problems, []);
  } finally {
    proxy.close();
    await server.stop();
  }
});

test("a connection that has died is told, and a prompt that was on its way is kept or sent, never twice", async () => {
  const { proxy, server, page } = await behindNetwork();
  try {
    const id = await server.client.create(null, { workingDirectory: server.work });
    await server.client.prompt(id, "First");
    await show(page, id);
    for (const [text, arrives] of [["Lost on its way", false], ["Arrived, unanswered", true]]) {
      await prompt(page).fill(text);
      proxy.hold(!arrives);
      await prompt(page).press("Enter");
      if (arrives) await server.client.event(id, "user.message", (data) => data.content === text);
      // TCP says nothing of it for minutes.
      await page.getByText("The server has gone.").waitFor();
      await page.locator(".unsent", { hasText: "not confirmed" }).waitFor();
      proxy.drop();
      await page.locator(".unsent").waitFor({ state: "detached" });
      assert.equal(await prompt(page).inputValue(), arrives ? "" : text);
      assert.deepEqual(await promptsOf(server, id), arrives ? ["First", text] : ["First"]);
    }
  } finally {
    proxy.close();
    await server.stop();
  }
});

test("a question of the model is asked in the page that remains when the other one is closed", async () => {
  const server = await Server.start({ prompts: PROMPTS });
  try {
    const first = await openPage(browser, server);
    await first.goto(`${server.origin}/#/new`);
    await first.getByLabel(/^Folder/).fill(server.work);
    await first.getByRole("button", { name: "Begin" }).click();
    await first.waitForURL(/session/);
    const id = /session\/([^/]+)/.exec(first.url())[1];
    await prompt(first).waitFor();
    const second = await openPage(browser, server);
    await show(second, id);
    await prompt(second).waitFor();
    await first.close();
    await within((async () => {
      while ((await server.client.call("jumpseat.web.describe", { sessionIds: [id] })).sessions[0].clients > 1) await new Promise(setImmediate);
    })(), "end of the first page");
    await prompt(second).fill("Ask me which colour");
    await prompt(second).press("Enter");
    await second.getByRole("region", { name: "A question to you" }).getByRole("button", { name: "Blue" }).click();
    await second.locator(".answer", { hasText: "Blue" }).waitFor();
  } finally {
    await server.stop();
  }
});

test("sessions that ask in the background are in the title, the live region and at the top of the list, by their prompt", async () => {
  const server = await Server.start({ prompts: PROMPTS });
  try {
    const shown = await server.client.create(null, { workingDirectory: server.work });
    await server.client.prompt(shown, "The one that is shown");
    const page = await openPage(browser, server);
    await show(page, shown);
    const asks = await server.client.create(null, { workingDirectory: server.work, requestPermission: true });
    await server.client.call("session.send", { sessionId: asks, prompt: "Please install it" });
    await page.waitForFunction(() => document.title.startsWith("(1) "));
    await page.getByRole("status").getByText("Please install it asks you something").waitFor({ state: "attached" });
    assert.match(await page.locator(".list").innerText(), /^Needs you\s+Please install it\s+asks you/);
    assert.deepEqual(page.problems, []);
  } finally {
    await server.stop();
  }
});
