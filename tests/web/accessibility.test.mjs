// The rules of axe-core on every view, at three widths, in light and dark; and no view is wider than its window.

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { AXE, call, launch, openPage, Server, shot, show } from "./support.mjs";
import { PROMPTS } from "./story.mjs";

const WIDTHS = [[320, 640], [1024, 768], [2560, 1300]];
let server, browser, story, waiting, failed;

before(async () => {
  server = await Server.start({ prompts: PROMPTS });
  const open = { workingDirectory: server.work, requestPermission: true };
  story = await server.client.create(null, open);
  await server.client.approveAll(story, "Write a function that makes slugs of titles, with accents kept, and test it.");
  waiting = await server.client.create([{ tool_calls: [call("edit", { path: "slug.py", old_str: "import re\n", new_str: "import re  # of the standard library\n" })] }], open);
  await server.client.call("session.send", { sessionId: waiting, prompt: "Add a comment" });
  await server.client.event(waiting, "permission.requested");
  failed = await server.client.create([{ errors: [{ status: 401, message: "The key is not valid" }], text: "never" }], open);
  await server.client.prompt(failed, "Hello").catch(() => undefined);
  browser = await launch();
});

after(async () => {
  await browser?.close();
  await server?.stop();
});

async function check(page, what) {
  await page.evaluate(() => new Promise((resolve) => setTimeout(resolve, 250)));
  const wide = await page.evaluate(() => document.documentElement.scrollWidth - innerWidth);
  assert.ok(wide <= 0, `${what} is ${wide} pixels wider than its window`);
  const { violations } = await page.evaluate(() => window.axe.run(document, { runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"] }));
  assert.deepEqual(violations.map((one) => `${what}: ${one.id}: ${one.help}\n${one.nodes.slice(0, 4).map((node) => `  ${node.html.slice(0, 200)} ${node.failureSummary}`).join("\n")}`), []);
}

for (const [width, height] of WIDTHS) {
  for (const colorScheme of ["light", "dark"]) {
    test(`every view at ${width} pixels in ${colorScheme} colours follows the rules`, async () => {
      const page = await openPage(browser, server, { viewport: { width, height }, colorScheme, bypassCSP: true });
      await page.addScriptTag({ content: readFileSync(AXE, "utf8") });
      const failures = [];
      const look = async (what, name = null) => {
        try {
          await check(page, what);
        } catch (error) {
          failures.push(error.message);
        }
        if (name) await shot(page, `${name}-${width}-${colorScheme}`);
      };
      await look("home", "home");
      await page.goto(`${server.origin}/#/setup`);
      await page.locator(".providers li").first().waitFor();
      await look("setup", "setup");
      for (const tab of ["transcript", "changes", "timeline", "usage", "decisions", "wire"]) {
        await show(page, story, tab);
        await look(tab, tab);
      }
      await page.locator(".wire-line").nth(3).click();
      await look("wire with JSON", "wire-json");
      await show(page, story);
      await page.locator(".transcript").evaluate((box) => { box.scrollTop = 0; });
      await look("the beginning of the transcript", "transcript-begin");
      await page.getByRole("button", { name: "Actions for this session" }).click();
      await look("menu");
      await page.keyboard.press("Escape");
      await show(page, waiting);
      await page.getByRole("region", { name: "A question to you" }).waitFor();
      await look("approval", "approval");
      await page.getByRole("button", { name: /^Deny/ }).click();
      await look("denial");
      await show(page, failed);
      await look("failed session", "failed");
      await page.goto(`${server.origin}/#/compare/${story}/${failed}`);
      await page.getByRole("region", { name: "Right transcript" }).waitFor();
      await look("compare", "compare");
      await page.goto(`${server.origin}/#/new`);
      await look("new session", "new");
      if (width < 800) {
        await page.getByRole("button", { name: "Sessions" }).click();
        await look("list of sessions", "list");
      }
      assert.deepEqual(failures, [], failures.join("\n\n"));
    });
  }
}
