// A real VS Code (code-server) with the extension, in a real Chromium: what the tests of the extension share.

import { execFile, spawn } from "node:child_process";
import { existsSync, mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { createServer } from "node:net";
import { homedir, tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { CHROMIUM, CONFIG, JUMPSEAT, launch, ROOT, within } from "../web/support.mjs";

const run = promisify(execFile);
const CODE_SERVER = "4.139.1";
/** The version of Node.js that it runs on. */
const NODE = "24";
const TOOLS = join(process.env.JUMPSEAT_TEST_TOOLS ?? join(homedir(), ".cache/jumpseat-tests"), `code-server-${CODE_SERVER}`);
export const SHOTS = join(ROOT, "clients/vscode/screenshots");
const START_MS = 60_000;

/** Install code-server, unless that has happened. Returns why there is none, or null. */
export async function missing() {
  if (!CHROMIUM) return "no Chromium is installed: apt install chromium, or set CHROMIUM";
  if (existsSync(join(TOOLS, ".installed"))) return null;
  const platform = { linux: "linux", darwin: "darwin" }[process.platform];
  if (!platform) return `code-server does not run on ${process.platform}`;
  mkdirSync(TOOLS, { recursive: true });
  writeFileSync(join(TOOLS, "package.json"), '{"private": true}');
  const npm = (folder, ...args) => run("npm", ["install", "--ignore-scripts", "--no-audit", "--no-fund", "--no-save", ...args], { cwd: folder });
  const code = join(TOOLS, "node_modules/code-server/lib/vscode");
  try {
    await npm(TOOLS, `node-${platform}-${process.arch}@${NODE}`, `code-server@${CODE_SERVER}`);
    await npm(code, "--omit=dev");
    await npm(join(code, "extensions"), "--omit=dev");
  } catch (error) {
    return `code-server cannot be installed: ${String(error.stderr ?? error).trim().split("\n").at(-1)}`;
  }
  writeFileSync(join(TOOLS, ".installed"), "");
  return null;
}

async function freePort() {
  const server = createServer();
  await new Promise((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address();
  await new Promise((resolve) => server.close(resolve));
  return port;
}

/** One VS Code, with a home folder of the server and a project. */
export class Editor {
  /** `prompts` is what the scripted model answers; `files` are those of the project; `settings` those of the user. */
  static async start({ prompts = [], files = {}, settings = {}, trusted = true }) {
    const editor = new Editor();
    editor.folder = mkdtempSync(join(tmpdir(), "jumpseat-vscode-"));
    editor.project = join(editor.folder, "project");
    for (const name of ["project", "home", "extensions", "data/User", "data/Machine"]) mkdirSync(join(editor.folder, name), { recursive: true });
    for (const [name, content] of Object.entries(files)) {
      mkdirSync(join(editor.project, name, ".."), { recursive: true });
      writeFileSync(join(editor.project, name), content);
    }
    writeFileSync(join(editor.folder, "home/config.toml"), CONFIG);
    writeFileSync(join(editor.folder, "home/script.yaml"), JSON.stringify({ prompts: [...prompts, { turns: [{ text: "You said: {{last_user}}" }] }] }));
    writeFileSync(join(editor.folder, "code-server.yaml"), "");
    // Those of the server's machine, which a person opens as remote settings, and those of the person.
    editor.machine = { "jumpseat.path": JUMPSEAT, "jumpseat.environment": { COPILOT_HOME: join(editor.folder, "home") }, ...settings };
    writeFileSync(join(editor.folder, "data/Machine/settings.json"), JSON.stringify(editor.machine));
    writeFileSync(join(editor.folder, "data/User/settings.json"), JSON.stringify({
      "security.workspace.trust.enabled": !trusted, "security.workspace.trust.startupPrompt": "never", "workbench.startupEditor": "none",
      "workbench.welcomePage.walkthroughs.openOnInstall": false, "workbench.secondarySideBar.defaultVisibility": "hidden", "workbench.editor.useModal": "off",
      "workbench.tips.enabled": false, "telemetry.telemetryLevel": "off", "chat.disableAIFeatures": true, "window.menuBarVisibility": "compact",
      "remote.autoForwardPorts": false,
    }));
    const node = join(TOOLS, "node_modules", readdirSync(join(TOOLS, "node_modules")).find((name) => /^node-(linux|darwin)-/.test(name)), "bin/node");
    const entry = join(TOOLS, "node_modules/code-server/out/node/entry.js");
    const environ = { PATH: process.env.PATH, HOME: editor.folder, LANG: "C.UTF-8" };
    const common = ["--config", join(editor.folder, "code-server.yaml"), "--user-data-dir", join(editor.folder, "data"), "--extensions-dir", join(editor.folder, "extensions")];
    const vsix = readdirSync(join(ROOT, "dist")).find((name) => name.endsWith(".vsix"));
    await run(node, [entry, ...common, "--install-extension", join(ROOT, "dist", vsix)], { env: environ });
    editor.port = await freePort();
    editor.process = spawn(node, [entry, ...common, "--auth", "none", "--bind-addr", `127.0.0.1:${editor.port}`, "--disable-telemetry", "--disable-update-check", "--disable-getting-started-override"], { env: environ, cwd: editor.project, detached: true, stdio: ["ignore", "pipe", "pipe"] });
    editor.output = "";
    const listening = new Promise((resolve, reject) => {
      const read = (data) => {
        editor.output += data;
        if (/HTTP server listening/.test(editor.output)) resolve();
      };
      editor.process.stdout.on("data", read);
      editor.process.stderr.on("data", read);
      editor.process.once("exit", () => reject(new Error(`code-server has ended: ${editor.output}`)));
    });
    await within(listening, "code-server");
    editor.browser = await launch();
    const context = await editor.browser.newContext({ viewport: { width: 1440, height: 900 }, permissions: ["clipboard-read", "clipboard-write"] });
    editor.page = await context.newPage();
    editor.page.setDefaultTimeout(20_000);
    editor.problems = [];
    editor.page.on("console", (message) => {
      // What the page's own policy refuses, in the frame of the webview.
      if (/Content Security Policy|Trusted Type/i.test(message.text())) editor.problems.push(message.text());
    });
    await editor.page.goto(`http://127.0.0.1:${editor.port}/?folder=${encodeURIComponent(editor.project)}`, { timeout: START_MS });
    await editor.page.locator(".monaco-workbench").waitFor({ timeout: START_MS });
    await editor.page.getByRole("button", { name: /jumpseat/ }).first().waitFor({ timeout: START_MS });
    return editor;
  }

  /** Change settings of the machine, as a person does it. */
  async set(settings) {
    Object.assign(this.machine, settings);
    await this.command("Preferences: Open Remote Settings (JSON)");
    const tab = this.page.locator(".tab", { hasText: "settings.json" });
    await tab.waitFor();
    await this.page.locator(".monaco-editor .view-line", { hasText: "jumpseat.path" }).first().waitFor();
    await this.page.keyboard.press("Control+A");
    await this.page.evaluate((text) => navigator.clipboard.writeText(text), JSON.stringify(this.machine));
    await this.page.keyboard.press("Control+V");
    await this.page.keyboard.press("Control+S");
    await this.page.locator(".tab:not(.dirty)", { hasText: "settings.json" }).waitFor();
    await this.command("View: Close Editor");
    await tab.waitFor({ state: "detached" });
  }

  /** Run a command by its title. */
  async command(title) {
    const box = this.page.locator(".quick-input-box input");
    const row = this.page.locator(".quick-input-list .monaco-list-row", { hasText: title }).first();
    // A key is lost while the focus moves between the frames of the editor, and rows move while the list is filled.
    for (let tries = 1; ; tries++) {
      await this.page.keyboard.press("F1");
      try {
        await box.waitFor({ timeout: 4000 });
        await box.fill(`>${title}`, { timeout: 4000 });
        await row.click({ timeout: 4000 });
        return;
      } catch (error) {
        if (tries === 5) throw error;
        await this.page.keyboard.press("Escape");
      }
    }
  }

  /** Open a file of the project. */
  async open(name) {
    await this.page.keyboard.press("Control+P");
    await this.page.locator(".quick-input-box input").fill(name);
    await this.page.locator(".quick-input-list .monaco-list-row", { hasText: name }).first().click();
    await this.page.locator(".tab", { hasText: name }).first().waitFor();
  }

  /** The page in the side bar; the one in an editor is the last. */
  frame(which = "first") {
    return this.page.locator("iframe.webview.ready")[which]().contentFrame().frameLocator("#active-frame");
  }

  async stop() {
    await this.browser?.close();
    if (this.process && this.process.exitCode === null) {
      const gone = new Promise((resolve) => this.process.once("exit", resolve));
      process.kill(-this.process.pid, "SIGTERM");
      const timer = setTimeout(() => process.kill(-this.process.pid, "SIGKILL"), 5000);
      await gone;
      clearTimeout(timer);
    }
    rmSync(this.folder, { recursive: true, force: true, maxRetries: 5 });
  }
}
