// A folder that is not trusted, a server that is missing, and one that is killed.

import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { chmodSync, existsSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { after, test } from "node:test";
import { JUMPSEAT, shot as shotIn } from "../web/support.mjs";
import { Editor, missing, SHOTS } from "./support.mjs";

const why = await missing();
const options = why ? { skip: why } : {};
const folder = mkdtempSync(join(tmpdir(), "jumpseat-evil-"));
after(() => rmSync(folder, { recursive: true }));

async function editing(settings, body) {
  const editor = await Editor.start(settings);
  try {
    await body(editor);
  } catch (error) {
    await shotIn(editor.page, "failure", SHOTS);
    throw error;
  } finally {
    await editor.stop();
  }
}

test("a folder that is not trusted starts no server of its own, no agent works in it, and stored sessions can be read", options, async () => {
  const evil = join(folder, "evil");
  writeFileSync(evil, `#!/bin/sh\ntouch ${join(folder, "started")}\n`);
  chmodSync(evil, 0o755);
  const files = { ".vscode/settings.json": JSON.stringify({ "jumpseat.path": evil, "jumpseat.environment": { COPILOT_HOME: folder } }) };
  await editing({ files, trusted: false }, async (editor) => {
    await editor.command("jumpseat: Open the Sessions");
    await editor.frame().getByText("There are no sessions yet.").waitFor();
    await editor.frame().getByRole("button", { name: "New session" }).first().click();
    await editor.frame().getByText(/This folder is in Restricted Mode/).waitFor();
    await shotIn(editor.page, "restricted", SHOTS);
    assert.equal(existsSync(join(folder, "started")), false);
  });
});

test("a missing server is named with what can be done, and one that is killed comes back with its sessions", options, async () => {
  await editing({ settings: { "jumpseat.path": "/no/such/jumpseat" } }, async (editor) => {
    await editor.command("jumpseat: Open the Sessions");
    await editor.frame().getByText(/cannot find the command \/no\/such\/jumpseat/).waitFor();
    await editor.frame().getByRole("button", { name: "Open the settings" }).waitFor();
    await shotIn(editor.page, "missing", SHOTS);
    await editor.set({ "jumpseat.path": JUMPSEAT });
    await editor.frame().getByRole("button", { name: "New session" }).first().click();
    const composer = editor.frame().getByRole("textbox", { name: "Prompt" });
    await composer.fill("Remember me");
    await composer.press("Enter");
    await editor.frame().locator(".answer", { hasText: "You said: Remember me" }).waitFor();
    const server = execFileSync("pgrep", ["-f", "--", "--headless --stdio"], { encoding: "utf8" }).trim().split("\n").map(Number);
    const own = server.filter((pid) => execFileSync("ps", ["eww", "-p", String(pid)], { encoding: "utf8" }).includes(editor.folder));
    assert.ok(own.length > 0);
    for (const pid of own) process.kill(pid, "SIGKILL");
    await editor.frame().getByText("No server has this session open").waitFor();
    await editor.frame().getByRole("button", { name: "Continue here" }).click();
    await composer.fill("And now?");
    await composer.press("Enter");
    await editor.frame().locator(".answer", { hasText: "You said: And now?" }).waitFor();
  });
});

test("a server in an environment of the folder is offered, and started only after a question that names it", options, async () => {
  const started = join(folder, "own");
  const files = { ".venv/bin/jumpseat": `#!/bin/sh\ntouch ${started}\nexec ${JUMPSEAT} "$@"\n` };
  await editing({ files, settings: { "jumpseat.path": "/no/such/jumpseat" } }, async (editor) => {
    chmodSync(join(editor.project, ".venv/bin/jumpseat"), 0o755);
    await editor.command("jumpseat: Open the Sessions");
    await editor.frame().getByRole("button", { name: "Use the server of this folder" }).click();
    const question = editor.page.locator(".monaco-dialog-box");
    await question.getByText(`Start ${join(editor.project, ".venv/bin/jumpseat")} as the server?`).waitFor();
    await shotIn(editor.page, "own-server", SHOTS);
    assert.equal(existsSync(started), false);
    await question.getByRole("button", { name: "Start It" }).click();
    await editor.frame().getByRole("button", { name: "New session" }).first().waitFor();
    assert.equal(existsSync(started), true);
  });
});
