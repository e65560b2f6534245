// The real server with the scripted model, and a real Chromium: what all tests of the page share.

import { spawn, execFileSync } from "node:child_process";
import { mkdtempSync, mkdirSync, rmSync, writeFileSync, existsSync } from "node:fs";
import { createRequire } from "node:module";
import { connect } from "node:net";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

export const ROOT = join(dirname(fileURLToPath(import.meta.url)), "../..");
const require = createRequire(join(ROOT, "clients/web/package.json"));
const { chromium } = require("playwright-core");
export const AXE = require.resolve("axe-core/axe.min.js");
export const SHOTS = join(ROOT, "clients/web/screenshots");
export const JUMPSEAT = join(ROOT, ".venv/bin/jumpseat");
export const CHROMIUM = process.env.CHROMIUM ?? ["/usr/bin/chromium", "/usr/bin/chromium-browser", "/usr/bin/google-chrome"].find(existsSync);
const WAIT_MS = 20_000;
/** A run with several calls, on a machine that is busy with others. */
const RUN_MS = 60_000;
export const CONFIG = `
default_model = "demo/large"

[adapters.demo]
type = "scripted"
script = "script.yaml"
models = [
  {id = "large", context_window = 32000, price = {input = 3, output = 15, cache_read = 0.3}},
  {id = "small", context_window = 8000, price = {input = 0.2, output = 1}},
]
`;

/** A client of the server over TCP, which prepares sessions. */
export class Client {
  #socket;
  #buffer = Buffer.alloc(0);
  #waiting = new Map();
  #listeners = new Set();
  #lastId = 0;
  events = [];

  static async open(port, token) {
    const client = new Client();
    client.#socket = connect(port, "127.0.0.1");
    await new Promise((resolve, reject) => client.#socket.once("connect", resolve).once("error", reject));
    client.#socket.on("data", (data) => client.#read(data));
    await client.call("connect", { token });
    return client;
  }

  #read(data) {
    this.#buffer = Buffer.concat([this.#buffer, data]);
    for (;;) {
      const head = this.#buffer.indexOf("\r\n\r\n");
      if (head < 0) return;
      const length = Number(/Content-Length: (\d+)/.exec(this.#buffer.subarray(0, head).toString())[1]);
      if (this.#buffer.length < head + 4 + length) return;
      const message = JSON.parse(this.#buffer.subarray(head + 4, head + 4 + length).toString());
      this.#buffer = this.#buffer.subarray(head + 4 + length);
      if (message.method === "session.event") {
        this.events.push(message.params);
        for (const listener of this.#listeners) listener(message.params);
      } else if (message.id !== undefined && message.method === undefined) {
        const { resolve, reject } = this.#waiting.get(message.id);
        if (message.error) reject(new Error(message.error.message));
        else resolve(message.result);
      }
    }
  }

  call(method, params = {}, limitMs = WAIT_MS) {
    const id = ++this.#lastId;
    const body = JSON.stringify({ jsonrpc: "2.0", id, method, params });
    this.#socket.write(`Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`);
    return within(new Promise((resolve, reject) => this.#waiting.set(id, { resolve, reject })), method, limitMs);
  }

  /** Wait for an event of a session, which may have arrived already. */
  event(sessionId, type, fits = () => true) {
    const matches = (one) => one.sessionId === sessionId && one.event.type === type && fits(one.event.data);
    const known = this.events.find(matches);
    if (known) return Promise.resolve(known.event);
    return within(new Promise((resolve) => {
      const listener = (one) => {
        if (!matches(one)) return;
        this.#listeners.delete(listener);
        resolve(one.event);
      };
      this.#listeners.add(listener);
    }), type);
  }

  /** Create a session; with `turns`, its model gives these. */
  async create(turns = null, options = {}) {
    const provider = turns ? { provider: { type: "scripted", script: { turns } } } : {};
    const { sessionId } = await this.call("session.create", { ...provider, streaming: true, enableFileChangeTracking: true, ...options });
    return sessionId;
  }

  /** Send a prompt and approve all calls that it makes. */
  async approveAll(sessionId, prompt) {
    const listener = ({ sessionId: of, event }) => {
      if (of === sessionId && event.type === "permission.requested") {
        void this.call("session.permissions.handlePendingPermissionRequest", { sessionId, requestId: event.data.requestId, result: { kind: "approve-once" } });
      }
    };
    this.#listeners.add(listener);
    await this.prompt(sessionId, prompt);
    this.#listeners.delete(listener);
  }

  async prompt(sessionId, prompt) {
    await this.call("session.sendAndWait", { sessionId, prompt }, RUN_MS);
  }

  close() {
    this.#socket.destroy();
  }
}

export function within(promise, what, limitMs = WAIT_MS) {
  let timer;
  const late = new Promise((_, reject) => { timer = setTimeout(() => reject(new Error(`no ${what} within ${limitMs} ms`)), limitMs); });
  return Promise.race([promise, late]).finally(() => clearTimeout(timer));
}

/** A server with a WebSocket port, in a home folder of its own. */
export class Server {
  /** `prompts` are the entries of the script that all sessions use unless they bring their own. */
  static async start({ prompts = [], folder = null, webPort = 0, environ = {}, options = [], config = CONFIG } = {}) {
    const server = new Server();
    server.folder = folder ?? mkdtempSync(join(tmpdir(), "jumpseat-web-"));
    server.work = join(server.folder, "project");
    if (folder === null) {
      mkdirSync(join(server.folder, "home"), { recursive: true });
      mkdirSync(server.work);
      writeFileSync(join(server.folder, "home/config.toml"), config);
      writeFileSync(join(server.folder, "home/script.yaml"), JSON.stringify({ prompts: [...prompts, { turns: [{ text: "You said: {{last_user}}" }] }] }));
    }
    server.environ = { PATH: process.env.PATH, HOME: server.folder, COPILOT_HOME: join(server.folder, "home"), COPILOT_CONNECTION_TOKEN: "sesame", ...environ };
    server.process = spawn(JUMPSEAT, ["--headless", "--port", "0", "--ws-port", String(webPort), ...options], { env: server.environ, cwd: server.work, stdio: ["ignore", "pipe", "pipe"] });
    server.stderr = "";
    server.process.stderr.on("data", (data) => { server.stderr += data; });
    let text = "";
    const ready = new Promise((resolve, reject) => {
      server.process.stdout.on("data", (data) => {
        text += data;
        const found = /listening on port (\d+)[^]*WebSocket clients on port (\d+)/.exec(text);
        if (found) resolve(found);
      });
      server.process.once("exit", () => reject(new Error(`the server has ended: ${server.stderr}`)));
    });
    const [, tcp, web] = await within(ready, "ports of the server");
    server.port = Number(tcp);
    server.webPort = Number(web);
    server.origin = `http://127.0.0.1:${server.webPort}`;
    server.client = await Client.open(server.port, "sesame");
    return server;
  }

  /** An address that logs a browser in, as `jumpseat web` prints it. */
  address() {
    const printed = execFileSync(JUMPSEAT, ["web", "--print"], { env: this.environ, encoding: "utf8" });
    return /https?:\/\/\S+/.exec(printed)[0];
  }

  async kill() {
    this.client.close();
    const gone = new Promise((resolve) => this.process.once("exit", resolve));
    this.process.kill("SIGKILL");
    await gone;
  }

  async stop() {
    this.client.close();
    if (this.process.exitCode === null && this.process.signalCode === null) {
      const gone = new Promise((resolve) => this.process.once("exit", resolve));
      this.process.kill("SIGTERM");
      await gone;
    }
    rmSync(this.folder, { recursive: true, force: true });
  }
}

export async function launch() {
  if (!CHROMIUM) throw new Error("no Chromium is installed: apt install chromium, or set CHROMIUM");
  return chromium.launch({
    executablePath: CHROMIUM,
    args: ["--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"],
  });
}

/** Open the page of a server in a new context; errors and violations of its policy are collected. */
export async function openPage(browser, server, options = {}) {
  const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...options });
  const page = await context.newPage();
  page.setDefaultTimeout(WAIT_MS / 2);
  page.problems = [];
  page.on("pageerror", (error) => page.problems.push(String(error)));
  page.on("console", (message) => {
    if (message.type() === "error" && !/WebSocket connection|ERR_CONNECTION_REFUSED/.test(message.text())) page.problems.push(message.text());
  });
  // The first page of a context starts a process of the browser.
  await page.goto(server.address(), { timeout: WAIT_MS });
  await page.getByText(/^Connected/).waitFor({ state: "attached" });
  return page;
}

export async function show(page, sessionId, tab = "transcript") {
  await page.goto(`${new URL(page.url()).origin}/#/session/${sessionId}/${tab}`);
  await page.locator(".session-head .pill:not(:text-is('loading'))").waitFor();
}

export async function shot(page, name, folder = SHOTS) {
  mkdirSync(folder, { recursive: true });
  await page.screenshot({ path: join(folder, `${name}.png`) });
}

export const call = (name, args, id = undefined) => ({ name, arguments: args, ...(id ? { id } : {}) });
