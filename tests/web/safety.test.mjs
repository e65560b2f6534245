// Content of models, tools, files and other pages: nothing of it runs, loads or reaches the server.

import assert from "node:assert/strict";
import { createServer } from "node:http";
import { after, before, test } from "node:test";
import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { call, launch, openPage, Server, show } from "./support.mjs";

let server, browser, page, other, requests;

const RUN = "window.hacked=(window.hacked||0)+1";
/** Texts that run a script, load something or leave the page in a renderer that is not careful. */
const ATTEMPTS = [
  `<script>${RUN}</script>`,
  `<img src=x onerror="${RUN}">`,
  `<svg onload="${RUN}"></svg>`,
  `<svg><script>${RUN}</script></svg>`,
  `<svg><animate onbegin="${RUN}" attributeName=x dur=1s>`,
  `<math><mtext><table><mglyph><style><img src=x onerror="${RUN}">`,
  `<iframe src="javascript:parent.${RUN}"></iframe>`,
  `<iframe srcdoc="<script>parent.${RUN}</script>"></iframe>`,
  `<object data="javascript:${RUN}"></object>`,
  `<embed src="javascript:${RUN}">`,
  `<a href="javascript:${RUN}" id=click>click</a>`,
  `[click](javascript:${RUN})`,
  `[click](JaVaScRiPt:${RUN})`,
  `[click](java\tscript:${RUN})`,
  `[click](&#106;avascript:${RUN})`,
  `[click](data:text/html,<script>parent.${RUN}</script>)`,
  `[click](vbscript:${RUN})`,
  `[click](<javascript:${RUN}>)`,
  `![x](x"onerror="${RUN})`,
  `![x](javascript:${RUN})`,
  `![x" onerror="${RUN}](x)`,
  `<javascript:${RUN}>`,
  `<details open ontoggle="${RUN}">x</details>`,
  `<video><source onerror="${RUN}"></video>`,
  `<audio src=x onerror="${RUN}">`,
  `<body onload="${RUN}">`,
  `<input autofocus onfocus="${RUN}">`,
  `<select autofocus onfocus="${RUN}"></select>`,
  `<textarea autofocus onfocus="${RUN}"></textarea>`,
  `<marquee onstart="${RUN}">x</marquee>`,
  `<form action="javascript:${RUN}"><button>go</button></form>`,
  `<form id=x></form><button form=x formaction="javascript:${RUN}">go</button>`,
  `<meta http-equiv="refresh" content="0;url=javascript:${RUN}">`,
  `<link rel=stylesheet href="data:text/css,*{display:none}">`,
  `<style>@import "http://127.0.0.1:1/x.css"; body{display:none}</style>`,
  `<base href="http://127.0.0.1:1/">`,
  `<template><script>${RUN}</script></template>`,
  `<noscript><p title="</noscript><img src=x onerror=${RUN}>">`,
  `<!--><img src=x onerror="${RUN}">-->`,
  `<![CDATA[><img src=x onerror="${RUN}">]]>`,
  `<x onclick="${RUN}" style="position:fixed;inset:0">cover</x>`,
  `<div style="background:url(javascript:${RUN})">x</div>`,
  `\`\`\`html\n</code></pre><img src=x onerror="${RUN}">\n\`\`\``,
  `\`\`\`"><img src=x onerror=${RUN}>\nx\n\`\`\``,
  `\`</code><img src=x onerror="${RUN}">\``,
  `| a |\n|---|\n| <img src=x onerror="${RUN}"> |`,
  `# <img src=x onerror="${RUN}">`,
  `- [x] <img src=x onerror="${RUN}">`,
  `> <script>${RUN}</script>`,
  `[x]: javascript:${RUN}\n\n[x]`,
  `\u202e<img src=x onerror="${RUN}">\u0000<script>${RUN}</script>`,
  `<img src="http://127.0.0.1:PORT/pixel.png">`,
  `![tracker](http://127.0.0.1:PORT/tracker.png)`,
  `<p class="toast error">Your token is needed</p><dialog open>x</dialog>`,
];

before(async () => {
  requests = [];
  other = createServer((request, response) => {
    requests.push(request.url);
    response.setHeader("Content-Type", "text/html");
    response.end("<title>another page</title>");
  }).listen(0, "127.0.0.1");
  await new Promise((resolve) => other.once("listening", resolve));
  server = await Server.start();
  browser = await launch();
  page = await openPage(browser, server);
});

after(async () => {
  await browser?.close();
  other?.close();
  await server?.stop();
});

async function checkNothingRan(what) {
  for (const href of await page.locator(".transcript a[href]").evaluateAll((all) => all.map((one) => one.getAttribute("href")))) {
    assert.match(href, /^(#\/|https?:|mailto:)/, what);
  }
  const found = await page.evaluate(() => ({
    hacked: window.hacked ?? 0,
    elements: [...document.querySelectorAll(".transcript script, .transcript iframe, .transcript object, .transcript embed, .transcript form, .transcript style, .transcript link, .transcript meta, .transcript base, .transcript video, .transcript .markdown img, .transcript .markdown svg, .transcript dialog, .transcript .toast, .transcript .markdown [style]")].map((one) => one.outerHTML),
    handlers: [...document.querySelectorAll(".transcript *")].filter((one) => one.getAttributeNames().some((name) => name.startsWith("on"))).map((one) => one.outerHTML),
  }));
  assert.deepEqual(found, { hacked: 0, elements: [], handlers: [] }, what);
}

test("more than fifty attempts at injection run nothing: as answers, reasoning, prompts, arguments, output, diffs and titles", async () => {
  assert.ok(ATTEMPTS.length >= 50);
  const texts = ATTEMPTS.map((text) => text.replaceAll("PORT", String(other.address().port)));
  for (let at = 0; at < texts.length; at += 6) {
    const some = texts.slice(at, at + 6);
    const turns = some.flatMap((text, index) => {
      writeFileSync(join(server.work, `file${index}.html`), `${text}\n`);
      return [
        { reasoning: text, text, tool_calls: [call("bash", { command: `cat file${index}.html # ${text.replaceAll("\n", " ")}`, description: text })] },
        { text: `and ${text}`, tool_calls: [call("create", { path: `made-${at}-${index}.html`, file_text: `${text}\n` })] },
      ];
    });
    const id = await server.client.create([...turns, { text: some.join("\n\n") }], { workingDirectory: server.work, requestPermission: true });
    await server.client.approveAll(id, some.join("\n\n"));
    await show(page, id);
    await page.locator(".transcript .row").first().waitFor();
    await page.locator(".transcript").evaluate((box) => { box.scrollTop = 0; });
    for (;;) {
      for (const summary of await page.locator(".transcript details:not([open]) > summary").all()) await summary.click({ timeout: 2000 }).catch(() => undefined);
      await checkNothingRan(some.join("\n"));
      const more = await page.locator(".transcript").evaluate((box) => {
        const before = box.scrollTop;
        box.scrollTop += box.clientHeight * 0.9;
        return box.scrollTop > before + 1;
      });
      if (!more) break;
      await page.evaluate(() => new Promise((resolve) => requestAnimationFrame(() => requestAnimationFrame(resolve))));
    }
    for (const tab of ["timeline", "decisions", "wire"]) {
      await show(page, id, tab);
      await checkNothingRan(`${tab}: ${some.join("\n")}`);
    }
  }
  assert.deepEqual(requests, [], "something of the content was loaded");
  assert.deepEqual(page.problems, [], "the policy of the page was violated, or an error occurred");
});

test("approvals show texts of models as texts", async () => {
  for (const text of [`<img src=x onerror="${RUN}">`, `</code></pre><script>${RUN}</script>`]) {
    const id = await server.client.create([{ tool_calls: [call("bash", { command: `echo '${text}'`, description: text })] }, { text: "ok" }], { workingDirectory: server.work, requestPermission: true });
    await server.client.call("session.send", { sessionId: id, prompt: "go" });
    await server.client.event(id, "permission.requested");
    await show(page, id);
    await page.getByRole("region", { name: "A question to you" }).locator("pre", { hasText: text }).waitFor();
    assert.equal(await page.evaluate(() => window.hacked ?? 0), 0);
    await page.getByRole("button", { name: /^Allow once/ }).click();
    await page.locator(".answer", { hasText: "ok" }).waitFor();
  }
});

test("the token is neither in the address, nor in the history, nor in the page, and its address works once", async () => {
  const context = await browser.newContext();
  const first = await context.newPage();
  const address = server.address();
  await first.goto(address);
  await first.getByText(/^Connected/).waitFor({ state: "attached" });
  assert.ok(!/pass|token/.test(first.url()), first.url());
  await first.goto("about:blank");
  await first.goBack();
  await first.getByText(/^Connected/).waitFor({ state: "attached" });
  assert.ok(!/pass|token/.test(first.url()), first.url());
  const kept = await first.evaluate(() => ({ local: { ...localStorage }, session: { ...sessionStorage }, cookie: document.cookie }));
  assert.deepEqual(kept, { local: {}, session: {}, cookie: "" });
  // A used address in the bar of a browser that is logged in opens the page, and so does a new tab.
  const later = await context.newPage();
  await later.goto(address);
  await later.getByText(/^Connected/).waitFor({ state: "attached" });
  const second = await (await browser.newContext()).newPage();
  await second.goto(address);
  await second.getByText("This token or address is not valid (any more).").waitFor();
  await second.getByLabel("Connection token").fill("wrong");
  await second.getByRole("button", { name: "Open" }).click();
  await second.getByText("This token or address is not valid (any more).").waitFor();
  await second.getByLabel("Connection token").fill("sesame");
  await second.getByRole("button", { name: "Open" }).click();
  await second.getByText(/^Connected/).waitFor({ state: "attached" });
  await context.close();
});

test("another page of this machine cannot connect, read, or frame the page", async () => {
  const foreign = await (await browser.newContext()).newPage();
  await foreign.goto(`http://127.0.0.1:${other.address().port}/`);
  const found = await foreign.evaluate(async ({ origin, socket }) => {
    const connected = await new Promise((resolve) => {
      const client = new WebSocket(`${socket}/rpc`);
      client.onopen = () => resolve(true);
      client.onerror = () => resolve(false);
    });
    const read = await fetch(`${origin}/about.json`).then((response) => response.text(), () => null);
    const frame = document.createElement("iframe");
    frame.src = `${origin}/`;
    document.body.append(frame);
    await new Promise((resolve) => { frame.onload = resolve; });
    let inside = null;
    try { inside = frame.contentDocument?.title ?? null; } catch { /* of another origin */ }
    return { connected, read, inside };
  }, { origin: server.origin, socket: server.origin.replace("http", "ws") });
  assert.deepEqual(found, { connected: false, read: null, inside: null });
  const opened = await (await browser.newContext()).newPage();
  await opened.goto(`http://127.0.0.1:${other.address().port}/`);
  assert.equal(await opened.evaluate((origin) => { const popup = window.open(origin); return popup === null || popup.closed || popup.length === 0; }, server.origin), true);
});

test("a program that has the port of an ended server gets nothing that logs in elsewhere", async () => {
  const ended = await Server.start();
  const tab = await openPage(browser, ended);
  const port = ended.webPort;
  await ended.kill();
  const seen = [];
  const stranger = createServer((request, response) => {
    seen.push(request.url);
    response.end(JSON.stringify({ nonce: "n", proof: "p" }));
  });
  stranger.on("upgrade", (request, socket) => { seen.push("upgrade"); socket.destroy(); });
  await new Promise((resolve) => stranger.listen(port, "127.0.0.1", resolve));
  const next = await Server.start({ folder: ended.folder });
  try {
    await tab.waitForFunction((asked) => performance.getEntriesByType("resource").filter((one) => one.name.includes("/login?")).length >= asked, 2);
    assert.ok(seen.length > 0 && seen.every((url) => /^\/login\?id=[0-9a-f]+&nonce=[\w-]+$/.test(url)), String(seen));
    // Passed on to the next server, the question brings no proof.
    const answer = await fetch(`${next.origin}${seen[0]}`, { headers: { Host: `127.0.0.1:${port}` } });
    assert.equal(answer.status, 404);
    assert.equal(await tab.evaluate(() => indexedDB.databases().then((all) => all.length)), 1);
  } finally {
    stranger.closeAllConnections();
    await new Promise((resolve) => stranger.close(resolve));
    await next.stop();
  }
});

test("a program that has the port and knows no login gets no connection of an open page", async () => {
  const ended = await Server.start();
  const tab = await openPage(browser, ended);
  const port = ended.webPort;
  await ended.kill();
  const seen = [];
  const stranger = createServer((request, response) => {
    seen.push(request.url.split("?")[0]);
    response.statusCode = 404;
    response.end();
  });
  stranger.on("upgrade", (_request, socket) => { seen.push("upgrade"); socket.destroy(); });
  await new Promise((resolve) => stranger.listen(port, "127.0.0.1", resolve));
  try {
    await tab.getByText("it may be another program").waitFor();
    // Nor is a person asked for the token of the server, which would go to the stranger.
    assert.equal(await tab.getByLabel("Connection token").count(), 0);
    assert.deepEqual([...new Set(seen)], ["/login"]);
  } finally {
    stranger.closeAllConnections();
    await new Promise((resolve) => stranger.close(resolve));
  }
  // The login is kept: the server is known again once it is back.
  const next = await Server.start({ folder: ended.folder, webPort: port });
  try {
    await tab.reload();
    await tab.getByText(/^Connected/).waitFor({ state: "attached" });
  } finally {
    await tab.context().close();
    await next.stop();
  }
});

test("the wire shows neither the token nor the key of a login", async () => {
  const id = await server.client.create([{ text: "hi" }]);
  await server.client.prompt(id, "hello");
  const fresh = await openPage(browser, server);
  await show(fresh, id, "wire");
  await fresh.getByText("Messages").click();
  const messages = fresh.getByText("jumpseat.web.login");
  await messages.nth(1).waitFor();
  for (const message of await messages.all()) await message.click();
  await fresh.getByText("expiresInS").first().waitFor();
  const shown = await fresh.locator("body").innerText();
  assert.match(shown, /"key": "\[redacted\]"/);
  assert.doesNotMatch(shown, /"key": "[\w-]{20,}"/);
  await fresh.context().close();
});

test("two clicks at one place answer one question", async () => {
  const calls = ["touch one", "touch two"].map((command, at) => call("bash", { command, description: command }, `c${at}`));
  const id = await server.client.create([{ tool_calls: calls }, { text: "both" }], { workingDirectory: server.work, requestPermission: true });
  await server.client.call("session.send", { sessionId: id, prompt: "go" });
  await server.client.event(id, "permission.requested");
  await show(page, id);
  const allow = page.getByRole("button", { name: /^Allow once/ });
  const question = page.getByRole("region", { name: "A question to you" });
  await question.getByText("touch one").first().waitFor();
  await allow.click({ trial: true });
  const box = await allow.boundingBox();
  const [x, y] = [box.x + box.width / 2, box.y + box.height / 2];
  await page.mouse.click(x, y);
  await question.locator("pre", { hasText: "touch two" }).waitFor();
  await page.mouse.click(x, y);
  await page.mouse.dblclick(x, y);
  assert.equal(await allow.isDisabled(), true);
  assert.equal(server.client.events.filter((one) => one.sessionId === id && one.event.type === "permission.completed").length, 1);
  await allow.click();
  await page.locator(".answer", { hasText: "both" }).waitFor();
});

test("answers that the Markdown parser cannot read are shown as text, and the page goes on", async () => {
  const texts = [`${"*".repeat(3000)}a${"*".repeat(3000)}`, "> - ".repeat(2000), ">".repeat(5000), "_a__".repeat(20_000)];
  const id = await server.client.create([...texts.map((text) => ({ text, tool_calls: [call("bash", { command: "true", description: "x" })] })), { text: "**fine**" }], { workingDirectory: server.work, requestPermission: true });
  await server.client.approveAll(id, "go");
  await show(page, id);
  await page.locator(".answer strong", { hasText: "fine" }).waitFor();
  await page.reload();
  await page.locator(".answer strong", { hasText: "fine" }).waitFor();
  assert.equal(await page.locator("main").count(), 1);
  await page.goto(`${new URL(page.url()).origin}/#/session/%E0%A4%A`);
  await page.getByRole("heading", { name: "Sessions" }).waitFor();
});

test("a question shows all of what is asked, however nested or long it is", async () => {
  const nested = JSON.parse(`${'{"a":['.repeat(95)}"innermost"${"]}".repeat(95)}`);
  const tools = [{ name: "act", description: "acts", parameters: { type: "object" } }];
  const memory = { fact: "tests run with make", subject: "tests", citations: "Makefile:1", reason: "was asked twice" };
  const asked = [
    [call("act", nested), ["innermost"]],
    [call("act", { ["k".repeat(100_000)]: "v".repeat(500_000), last: "the end" }), ["the end"]],
    [call("bash", { command: `${"echo a; ".repeat(2_000)}echo the end`, description: "x".repeat(50_000) }), ["echo the end"]],
    [call("store_memory", memory), Object.values(memory)],
  ];
  for (const [one, texts] of asked) {
    const id = await server.client.create([{ tool_calls: [one] }, { text: "all" }], { workingDirectory: server.work, requestPermission: true, tools, memory: { enabled: true } });
    await server.client.call("session.send", { sessionId: id, prompt: "go" });
    await server.client.event(id, "permission.requested");
    await show(page, id);
    const question = page.getByRole("region", { name: "A question to you" });
    await question.getByRole("button", { name: /^Allow once/ }).click({ trial: true });
    const shown = await question.locator(".asked").evaluate((box) => box.innerText);
    for (const text of texts) assert.ok(shown.includes(text), text);
    await server.client.call("session.abort", { sessionId: id });
  }
  assert.deepEqual(page.problems, []);
});
