// Make pictures of every view, in five widths, light and dark: `make pictures`. The chosen ones go into docs/pictures.

import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { call, launch, openPage, ROOT, Server, show, SHOTS } from "./support.mjs";
import { PROMPTS } from "./story.mjs";

const SIZES = [[320, 640], [640, 800], [1024, 768], [1440, 900], [2560, 1300]];
const FOLDER = join(SHOTS, "pictures");
const DOCS = join(ROOT, "docs/pictures");
/** The pictures that the documentation shows, at one width, as WebP. */
const CHOSEN = { timeline: "web-timeline", usage: "web-usage", wire: "web-log" };
const CHOSEN_WIDTH = 1024;
const QUALITY = 0.82;
/** How long the person of the story thinks about a question. */
const THINKS_MS = 700;
const SETTLE_MS = 300;

const usage = (input, output, cacheRead, reasoning = 0) => ({ input, output, cache_read: cacheRead, reasoning });
const TURNS = [
  { reasoning: "The parser comes first.", delay_ms: 30, usage: usage(5600, 120, 4900, 60), tool_calls: [call("grep", { pattern: "def ", path: "." }), call("view", { path: "slug.py" })] },
  { delay_ms: 25, usage: usage(6400, 240, 5500, 90), tool_calls: [call("create", { path: "tests/test_slug.py", file_text: "from slug import slugify\n\n\ndef test_accents_stay():\n    assert slugify('Ünï code') == 'ünï-code'\n" })] },
  { delay_ms: 20, usage: usage(7100, 90, 6300), tool_calls: [call("bash", { command: "sleep 2 && python3 -m unittest discover -s tests", description: "Run the tests" })] },
  { text: "The tests are in `tests/test_slug.py`.", delay_ms: 20, usage: usage(7800, 60, 7000) },
  { delay_ms: 40, usage: usage(8100, 30, 7700), tool_calls: [call("bash", { command: "git log --oneline -3 || true", description: "Look at the history" })] },
  { text: "There is no history yet.", delay_ms: 30, usage: usage(8300, 25, 8000) },
  { text: "It takes a title and gives a part of an address.", delay_ms: 60, usage: usage(8600, 40, 8200) },
];

/** Send a prompt; a person approves what it asks after some thought. */
async function play(client, sessionId, prompt) {
  let open = true;
  const seen = new Set();
  const answer = setInterval(() => {
    for (const { sessionId: of, event } of client.events) {
      if (!open || of !== sessionId || event.type !== "permission.requested" || seen.has(event.id)) continue;
      seen.add(event.id);
      setTimeout(() => void client.call("session.permissions.handlePendingPermissionRequest", { sessionId, requestId: event.data.requestId, result: { kind: "approve-once" } }), THINKS_MS);
    }
  }, 50);
  await client.prompt(sessionId, prompt);
  open = false;
  clearInterval(answer);
}

async function asWebp(page, png) {
  const url = await page.evaluate(async ([data, quality]) => {
    const image = new Image();
    image.src = `data:image/png;base64,${data}`;
    await image.decode();
    const canvas = document.createElement("canvas");
    [canvas.width, canvas.height] = [image.width, image.height];
    canvas.getContext("2d").drawImage(image, 0, 0);
    return canvas.toDataURL("image/webp", quality);
  }, [png.toString("base64"), QUALITY]);
  return Buffer.from(url.split(",")[1], "base64");
}

const server = await Server.start({ prompts: PROMPTS });
const browser = await launch();
try {
  const { client } = server;
  const open = { workingDirectory: server.work, requestPermission: true };
  const story = await client.create(null, open);
  await play(client, story, "Write a function that makes slugs of titles, with accents kept, and test it.");
  const long = await client.create(TURNS, open);
  for (const prompt of ["Test the function, please.", "What was changed lately?", "What does slugify do?"]) await play(client, long, prompt);
  const waiting = await client.create([{ tool_calls: [call("edit", { path: "slug.py", old_str: "import re\n", new_str: "import re  # of the standard library\n" })] }], open);
  await client.call("session.send", { sessionId: waiting, prompt: "Add a comment" });
  await client.event(waiting, "permission.requested");

  rmSync(FOLDER, { recursive: true, force: true });
  mkdirSync(FOLDER, { recursive: true });
  mkdirSync(DOCS, { recursive: true });
  const blank = await (await browser.newContext()).newPage();
  let number = 0;
  let chosenBytes = 0;
  for (const [width, height] of SIZES) {
    for (const colorScheme of ["light", "dark"]) {
      const page = await openPage(browser, server, { viewport: { width, height }, colorScheme });
      const take = async (name) => {
        await page.waitForTimeout(SETTLE_MS);
        const png = await page.screenshot({ path: join(FOLDER, `${name}-${width}-${colorScheme}.png`) });
        number += 1;
        if (width !== CHOSEN_WIDTH || !(name in CHOSEN)) return;
        const webp = await asWebp(blank, png);
        chosenBytes += webp.length;
        writeFileSync(join(DOCS, `${CHOSEN[name]}-${colorScheme}.webp`), webp);
      };
      await take("home");
      for (const tab of await tabs(page, story)) {
        await show(page, story, tab);
        await take(tab);
      }
      await show(page, long, "timeline");
      await take("timeline-runs");
      await show(page, story, "wire");
      await page.locator(".wire-line").nth(3).click();
      await take("wire-json");
      await show(page, waiting);
      await page.getByRole("region", { name: "A question to you" }).waitFor();
      await take("approval");
      await page.goto(`${server.origin}/#/compare/${story}/${long}`);
      await page.getByRole("region", { name: "Right transcript" }).waitFor();
      await take("compare");
      await page.goto(`${server.origin}/#/new`);
      await take("new");
      await page.context().close();
    }
  }
  console.log(`${number} pictures in ${FOLDER}, ${Object.keys(CHOSEN).length * 2} of them in docs/pictures (${Math.round(chosenBytes / 1024)} KB)`);
} finally {
  await browser.close();
  await server.stop();
}

/** Return the views of a session, as their links name them, and the decisions, which are a part of the log. */
async function tabs(page, sessionId) {
  await show(page, sessionId);
  const links = await page.locator("nav.tabs a").evaluateAll((all) => all.map((link) => link.getAttribute("href").split("/")[3]));
  return [...new Set([...links, "decisions"])];
}
