// An agent that is a process: its messages, and the rules that all protocols share.

import { spawn } from "node:child_process";
import { existsSync, mkdirSync, statSync } from "node:fs";
import { basename, join, resolve } from "node:path";
import { preview, ScriptError } from "./patterns.js";

/** How messages are told apart, what carries events, and the first request of a connection. */
export const PROTOCOLS = {
  copilot: {
    framing: "content-length",
    greeting: ["connect", {}, "<any>"],
    feed: { method: "session.event", session: "sessionId", event: "event", kind: "type" },
  },
  "acp-1": {
    framing: "lines",
    greeting: ["initialize", { protocolVersion: 1, clientCapabilities: {} }, { protocolVersion: 1 }],
    feed: { method: "session/update", session: "sessionId", event: "update", kind: "sessionUpdate" },
  },
  "acp-2": {
    framing: "lines",
    greeting: [
      "initialize",
      { protocolVersion: 2, info: { name: "script", version: "1" }, capabilities: {} },
      { protocolVersion: 2, info: "<object>" },
    ],
    feed: { method: "session/update", session: "sessionId", event: "update", kind: "sessionUpdate" },
  },
  ahp: {
    framing: "lines",
    greeting: [
      "initialize",
      { channel: "ahp-root://", protocolVersions: ["1.0.0"], clientId: "script" },
      { protocolVersion: "1.0.0" },
    ],
    feed: { method: "action", session: "channel", event: "action", kind: "type" },
  },
};
PROTOCOLS["copilot-3"] = PROTOCOLS.copilot;
PROTOCOLS["copilot-2"] = { ...PROTOCOLS.copilot, greeting: ["ping", {}, "<any>"] };

const INHERITED = ["PATH", "LANG", "LC_ALL", "SYSTEMROOT", "TMPDIR", "VIRTUAL_ENV"];
const KEPT_STDERR = 16 * 1024;

/** Start an agent with `folder` as its working and home directory. */
export function startAgent(command, { protocol = "copilot", framing, folder, env = {} } = {}) {
  const found = PROTOCOLS[protocol];
  if (!found) throw new ScriptError(`unknown protocol '${protocol}': expected ${Object.keys(PROTOCOLS).join(", ")}`);
  return new Agent(command, found, framing ?? found.framing, folder ?? process.cwd(), env);
}

export class Agent {
  /** All messages, as `{direction: "->" | "<-", message}`, and the violations of the rules. */
  traffic = [];
  problems = [];
  stderr = "";
  exitCode = null;
  ended = false;
  #framing;
  #process;
  #rest = Buffer.alloc(0);
  #waiting = new Set();
  #asked = new Map();
  #questions = new Set();
  #lastId = 0;
  #exited;

  constructor(command, protocol, framing, folder, env) {
    this.feed = protocol.feed;
    this.#framing = framing;
    const home = join(folder, "home");
    mkdirSync(home, { recursive: true });
    const inherited = Object.fromEntries(INHERITED.flatMap((name) => (name in process.env ? [[name, process.env[name]]] : [])));
    const all = { ...inherited, HOME: folder, COPILOT_HOME: home, ...env };
    const given = Object.fromEntries(Object.entries(all).filter(([, value]) => value !== null));
    // A group of its own, which is ended as a whole.
    const [program, ...words] = inFull(command, folder);
    this.#process = spawn(program, words, { cwd: folder, env: given, detached: process.platform !== "win32" });
    this.#exited = new Promise((resolve) => {
      this.#process.on("error", (error) => {
        this.failure = new ScriptError(`cannot run '${command[0]}': ${error.message}`);
        resolve(-1);
      });
      this.#process.on("exit", (code, signal) => resolve(code ?? `signal ${signal}`));
    }).then((code) => {
      this.exitCode = code;
      this.ended = true;
      this.#notify();
      return code;
    });
    this.#process.stdin.on("error", () => undefined);
    this.#process.stdout.on("data", (data) => this.#read(data));
    this.#process.stderr.on("data", (data) => (this.stderr = (this.stderr + data).slice(-KEPT_STDERR)));
  }

  /** Send a message without waiting. */
  send(message) {
    const whole = { jsonrpc: "2.0", ...message };
    this.traffic.push({ direction: "->", message: whole });
    if ("method" in whole && "id" in whole) this.#asked.set(JSON.stringify(whole.id), { method: whole.method, answers: 0 });
    this.write(this.encode(whole));
  }

  /** Send bytes, or text, as they are. */
  write(data) {
    if (this.#process.stdin.writable) this.#process.stdin.write(data);
  }

  encode(message) {
    const body = JSON.stringify(message);
    return this.#framing === "lines" ? `${body}\n` : `Content-Length: ${Buffer.byteLength(body)}\r\n\r\n${body}`;
  }

  /** Send a request, and return its response; `undefined` if there is none in time. */
  async request(method, params, seconds = 10) {
    const id = ++this.#lastId;
    const since = this.traffic.length;
    this.send(params === undefined ? { id, method } : { id, method, params });
    let answer;
    await this.until(() => (answer = this.incoming(since).find((one) => isObject(one) && !("method" in one) && one.id === id)) !== undefined, seconds);
    return answer;
  }

  /** Send a request, and return its result; throw for an error, or for none in time. */
  async call(method, params, seconds = 10) {
    const answer = await this.request(method, params, seconds);
    if (answer === undefined) throw new Error(`${method}: no response within ${seconds} s${this.note()}`);
    if ("error" in answer) throw new Error(`${method}: ${preview(answer.error, 400)}`);
    return answer.result;
  }

  /** Return the messages of the agent, from a place in the traffic on. */
  incoming(since = 0) {
    return this.traffic.slice(since).flatMap(({ direction, message }) => (direction === "<-" ? [message] : []));
  }

  /** Return the events received so far, of a session or of all. */
  events(session) {
    return this.incoming().flatMap((message) => this.eventOf(message, session) ?? []);
  }

  /** Return the event that a message carries, or `undefined`. */
  eventOf(message, session) {
    const params = message?.params;
    if (message?.method !== this.feed.method || (session !== undefined && params?.[this.feed.session] !== session)) return undefined;
    return params?.[this.feed.event];
  }

  /** Wait until `done()`, which is asked after each message; return its last result. */
  async until(done, seconds) {
    const end = Date.now() + seconds * 1000;
    while (!done()) {
      const left = end - Date.now();
      if (left <= 0 || this.ended) return Boolean(done());
      await new Promise((resolve) => {
        const timer = setTimeout(wake, left);
        const waiting = this.#waiting;
        function wake() {
          clearTimeout(timer);
          waiting.delete(wake);
          resolve();
        }
        waiting.add(wake);
      });
    }
    return true;
  }

  /** Return the requests of the client that were never answered. */
  unanswered() {
    return [...this.#asked].filter(([, one]) => one.answers === 0).map(([id, one]) => `request ${id} (${one.method}) was never answered`);
  }

  /** Close the agent's input, and return its exit code; `undefined` if it runs on. */
  async closeInput(seconds = 5) {
    this.#process.stdin.end();
    let timer;
    const late = new Promise((resolve) => (timer = setTimeout(resolve, seconds * 1000)));
    const code = await Promise.race([this.#exited, late]);
    clearTimeout(timer);
    return code;
  }

  /** Kill the agent and the processes that it has started. */
  async kill() {
    if (!this.ended && this.#process.pid !== undefined) {
      try {
        if (process.platform === "win32") this.#process.kill();
        else process.kill(-this.#process.pid, "SIGKILL");
      } catch (error) {
        if (error.code !== "ESRCH") throw error;
      }
    }
    await this.#exited;
  }

  /** Return how the agent has ended, for errors; empty if it runs. */
  note() {
    const said = this.stderr.trim();
    return this.ended ? `; the agent has exited with ${this.exitCode}${said ? `, end of its stderr: ${said.slice(-500)}` : ""}` : "";
  }

  async [Symbol.asyncDispose]() {
    await this.kill();
  }

  #notify() {
    for (const wake of [...this.#waiting]) wake();
  }

  #read(data) {
    this.#rest = this.#rest.length ? Buffer.concat([this.#rest, data]) : data;
    for (let body = this.#next(); body !== undefined; body = this.#next()) this.#receive(body);
    this.#notify();
  }

  /** Take the next whole body off the received bytes. */
  #next() {
    const rest = this.#rest;
    if (this.#framing === "lines") {
      const end = rest.indexOf("\n");
      if (end < 0) return undefined;
      this.#rest = rest.subarray(end + 1);
      const line = rest.toString("utf8", 0, end);
      return line.trim() ? line : this.#next();
    }
    const end = rest.indexOf("\r\n\r\n");
    if (end < 0) return undefined;
    const length = /^content-length:[ \t]*(\d{1,12})[ \t]*$/im.exec(rest.toString("latin1", 0, end));
    if (!length) {
      this.problems.push(`broken frame: ${preview(rest.toString("latin1", 0, Math.min(end, 80)))}`);
      this.#rest = rest.subarray(end + 4);
      return this.#next();
    }
    const last = end + 4 + Number(length[1]);
    if (rest.length < last) return undefined;
    this.#rest = rest.subarray(last);
    return rest.toString("utf8", end + 4, last);
  }

  #receive(body) {
    let message;
    try {
      message = JSON.parse(body);
    } catch {
      this.problems.push(`body is not JSON: ${preview(body.slice(0, 80))}`);
      return;
    }
    this.traffic.push({ direction: "<-", message });
    this.problems.push(...this.#check(message));
  }

  #check(message) {
    if (!isObject(message)) return ["expected every message to be a JSON object"];
    const problems = message.jsonrpc === "2.0" ? [] : ['message without "jsonrpc": "2.0"'];
    if ("method" in message) {
      const { method } = message;
      if (typeof method !== "string") return [...problems, `expected the method to be a string, got ${preview(method)}`];
      if ("result" in message || "error" in message) problems.push(`${method}: a request must not have a result or an error`);
      return [...problems, ...this.#checkQuestion(message), ...this.#checkEvent(message)];
    }
    const label = `response to ${preview(message.id)}`;
    if ("result" in message === "error" in message) problems.push(`${label}: expected a result or an error, got ${"result" in message ? "both" : "neither"}`);
    if ("error" in message && !(Number.isInteger(message.error?.code) && typeof message.error?.message === "string")) {
      problems.push(`${label}: expected an error with an integer code and a string message, got ${preview(message.error)}`);
    }
    // JSON-RPC: the error for a message that could not be parsed has no id.
    if (message.id === null && "error" in message) return problems;
    const asked = this.#asked.get(JSON.stringify(message.id));
    if (!asked) problems.push(`${label}: no request has this id`);
    else if (asked.answers++ > 0) problems.push(`${label} (${asked.method}): the request was already answered`);
    return problems;
  }

  #checkQuestion({ id, method }) {
    if (id === undefined) return [];
    if (method === this.feed.method) return [`${method}: a notification must not have an id`];
    const key = JSON.stringify(id);
    const isUsed = this.#questions.has(key);
    this.#questions.add(key);
    return isUsed ? [`${method}: the id ${key} was used by an earlier request of the agent`] : [];
  }

  /** Check that an event names its session and its kind, in every protocol. */
  #checkEvent({ method, params }) {
    if (method !== this.feed.method) return [];
    const { session, event, kind } = this.feed;
    if (!isObject(params)) return [`${method}: expected params to be an object, got ${preview(params)}`];
    const problems = typeof params[session] === "string" ? [] : [`${method}: expected ${session} to be a string, got ${preview(params[session])}`];
    if (!isObject(params[event])) problems.push(`${method}: expected ${event} to be an object, got ${preview(params[event])}`);
    else if (typeof params[event][kind] !== "string") problems.push(`${method}: expected ${event}.${kind} to be a string, got ${preview(params[event][kind])}`);
    return problems;
  }
}

/**
 * Return a command for another working folder: with full paths of the files that it names here. Files of `folder` come
 * first. The name of a program without a folder is left for `PATH`.
 */
function inFull([program, ...words], folder) {
  const isHere = (word) => {
    try {
      return !existsSync(resolve(folder, word)) && statSync(word).isFile();
    } catch {
      return false;
    }
  };
  const full = (word) => (isHere(word) ? resolve(word) : word);
  return [basename(program) === program ? program : full(program), ...words.map(full)];
}

function isObject(value) {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}
