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
  const kept = await first.evaluate(() => ({ local: { ...localStorage }, session: { ...sessionStorage }, cookie: document.cookie, html: document.documentElement.outerHTML }));
  assert.deepEqual([kept.local, kept.cookie, Object.keys(kept.session)], [{}, "", ["jumpseat.token"]]);
  assert.ok(!kept.html.includes(kept.session["jumpseat.token"]) && !address.includes(kept.session["jumpseat.token"]));
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
