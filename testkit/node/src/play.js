// Play a script: its steps in order, and the rules that all protocols share.

import { mkdtempSync, mkdirSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { basename, dirname, join, relative } from "node:path";
import { parse } from "yaml";
import { PROTOCOLS, startAgent } from "./agent.js";
import { serveModel } from "./model.js";
import { checkPattern, differences, fill, preview, ScriptError } from "./patterns.js";

const HEAD = ["name", "server", "protocol", "framing", "within", "model", "env", "files", "greet", "unchecked", "steps"];
const PYTHON_ONLY = ["url", "config", "strict"];
const FIELDS = {
  call: ["params", "result", "error"],
  send: [],
  raw: [],
  expect: [],
  events: ["session", "only", "ignore"],
  events_in_any_order: ["session"],
  answer: ["params", "result", "error"],
  never: ["for"],
  set: [],
  restart: [],
  close: ["exit"],
};
const SHOWN = 12;

class Mismatch extends Error {}

/** Read a script file: `.jsonl` as JSON Lines, any other as YAML. */
export function loadScript(path) {
  const text = readFileSync(path, "utf8");
  const name = basename(path);
  if (!path.endsWith(".jsonl")) {
    const value = parse(text);
    return checkScript(Array.isArray(value) ? { steps: value } : value, name);
  }
  const values = text.split("\n").filter((line) => line.trim()).map((line) => JSON.parse(line));
  const head = values.length && !verbOf(values[0]) ? values.shift() : {};
  return checkScript({ ...head, steps: values }, name);
}

/** Check the form of a script; throw a ScriptError for what this player does not know. */
export function checkScript(script, name = "script") {
  const fail = (text) => {
    throw new ScriptError(`invalid script ${name}: ${text}`);
  };
  if (!Array.isArray(script?.steps)) fail("steps: expected an array");
  for (const field of Object.keys(script)) {
    if (PYTHON_ONLY.includes(field)) fail(`${field}: only the player in Python, jumpseat-testkit, has it`);
    if (!HEAD.includes(field)) fail(`${field}: unknown, expected one of ${HEAD.join(", ")}`);
  }
  if (!(script.protocol ?? "copilot" in PROTOCOLS)) fail(`protocol: unknown '${script.protocol}'`);
  script.steps.forEach((step, place) => {
    const verb = verbOf(step);
    if (!verb) fail(`steps[${place}]: expected a step with one of these fields: ${Object.keys(FIELDS).join(", ")}`);
    const unknown = Object.keys(step).find((field) => field !== verb && field !== "within" && !FIELDS[verb].includes(field));
    if (unknown) fail(`steps[${place}].${unknown}: unknown`);
    const patterns = { call: [step.result, step.error], expect: [step.expect], answer: [step.params], never: [step.never] };
    for (const pattern of patterns[verb] ?? (verb.startsWith("events") ? step[verb] : [])) checkPattern(pattern);
  });
  return script;
}

/** Play a script, given as a path or an object; return its outcome. Throws a ScriptError for an invalid one. */
export async function playScript(script, { server } = {}) {
  const isPath = typeof script === "string" || script instanceof URL;
  const path = script instanceof URL ? script.pathname : script;
  const parsed = isPath ? loadScript(path) : checkScript(script);
  const name = parsed.name ?? (isPath ? basename(path).split(".")[0] : "script");
  const command = server ?? parsed.server;
  if (!command) throw new ScriptError("expected the command of the server to test: `server` in the script, or the option `server`");
  const folder = mkdtempSync(join(tmpdir(), "jumpseat-script-"));
  const model = parsed.model ? await serveModel(inFolder(parsed.model, folder)) : undefined;
  const outcome = { name, ok: true, steps: parsed.steps.length, failures: [], conversation: [] };
  try {
    const captures = { folder, ...(model ? { model: model.url } : {}) };
    writeFiles(parsed.files ?? {}, folder, captures);
    await new Player(parsed, Array.isArray(command) ? command : words(command), folder, captures, outcome).play();
  } finally {
    await model?.close();
    rmSync(folder, { recursive: true, force: true });
  }
  outcome.ok = outcome.failures.length === 0;
  return outcome;
}

/** Play a script, and throw an Error with the differences if it fails. */
export async function assertScript(script, options) {
  const outcome = await playScript(script, options);
  if (!outcome.ok) throw new Error(`script '${outcome.name}' failed\n${outcome.failures.join("\n")}`);
  return outcome;
}

function verbOf(step) {
  return step && typeof step === "object" ? Object.keys(FIELDS).find((verb) => verb in step) : undefined;
}

/** Split a command line into words, with quotes as in a shell. */
function words(text) {
  return [...text.matchAll(/(?:[^\s"']|"[^"]*"|'[^']*')+/g)].map(([word]) => word.replace(/"([^"]*)"|'([^']*)'/g, "$1$2"));
}

function inFolder(model, folder) {
  return JSON.parse(JSON.stringify(model).replaceAll("${folder}", JSON.stringify(folder).slice(1, -1)));
}

function writeFiles(files, folder, captures) {
  for (const [name, text] of Object.entries(files)) {
    const path = join(folder, name);
    if (relative(folder, path).startsWith("..")) throw new ScriptError(`file '${name}' is outside of the script's folder`);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, typeof text === "string" ? fill(text, captures) : Buffer.from(text.base64, "base64"));
  }
}

class Player {
  #position = 0;
  #before = 0;
  #closed = false;

  constructor(script, command, folder, captures, outcome) {
    Object.assign(this, { script, command, folder, captures, outcome });
    this.protocol = PROTOCOLS[script.protocol ?? "copilot"];
    this.within = script.within ?? 10;
  }

  async play() {
    const parts = [[]];
    for (const step of this.script.steps) {
      parts.at(-1).push(step);
      if ("restart" in step) parts.push([]);
    }
    let number = 0;
    for (const part of parts) {
      this.#position = this.#before = 0;
      const agent = startAgent(this.command, { ...this.script, folder: this.folder, env: this.#environment() });
      try {
        if (this.script.greet) await this.#greet(agent);
        for (const step of part) await this.#run(++number, step, agent);
        if (!this.#closed && !part.some((step) => "restart" in step)) await this.#finish(agent);
      } catch (error) {
        if (!(error instanceof Mismatch)) throw error;
        this.outcome.failures.push(error.message);
      } finally {
        await agent.kill();
        if (!this.script.unchecked) this.outcome.failures.push(...agent.problems);
        this.outcome.conversation.push(...agent.traffic);
      }
      if (agent.failure) throw agent.failure;
      if (this.outcome.failures.length) return;
    }
  }

  #environment() {
    const own = this.protocol.framing === "lines" && this.captures.model;
    const model = own ? { OPENAI_BASE_URL: own, OPENAI_API_KEY: "none", OPENAI_MODEL: "scripted" } : {};
    return { ...model, ...fill(this.script.env ?? {}, this.captures) };
  }

  async #greet(agent) {
    const [call, params, result] = this.protocol.greeting;
    try {
      await this.#call({ call, params, result }, agent);
    } catch (error) {
      if (error instanceof Mismatch) throw new Mismatch(`greeting (${call}): ${error.message}`);
      throw error;
    }
  }

  async #run(number, step, agent) {
    const verb = verbOf(step);
    const start = this.#before;
    this.#before = agent.traffic.length;
    try {
      if (verb === "call") await this.#call(step, agent);
      else if (verb === "send") agent.send(fill(step.send, this.captures));
      else if (verb === "raw") agent.write(String(fill(step.raw, this.captures)));
      else if (verb === "expect") await this.#expect(step, agent);
      else if (verb === "events") await this.#events(step, agent);
      else if (verb === "events_in_any_order") await this.#anyOrder(step, agent);
      else if (verb === "answer") await this.#answer(step, agent);
      else if (verb === "never") await this.#never(step, agent, start);
      else if (verb === "set") Object.assign(this.captures, fill(step.set, this.captures));
      else if (verb === "restart") await agent.kill();
      else await this.#close(step, agent);
    } catch (error) {
      if (error instanceof ScriptError) throw new ScriptError(`step ${number} (${verb}): ${error.message}`);
      if (!(error instanceof Mismatch)) throw error;
      const last = agent.traffic.slice(-SHOWN).map((one) => `    ${one.direction} ${preview(one.message, 160)}`);
      throw new Mismatch(`step ${number} (${verb}): ${error.message}\n  end of the conversation:\n${last.join("\n")}`);
    }
  }

  #seconds(step) {
    return step.within ?? this.within;
  }

  async #call(step, agent) {
    const params = step.params === undefined ? undefined : fill(step.params, this.captures);
    const answer = await agent.request(step.call, params, this.#seconds(step));
    if (answer === undefined) throw new Mismatch(`${step.call}: no response within ${this.#seconds(step)} s${agent.note()}`);
    if (step.error !== undefined && !("error" in answer)) {
      throw new Mismatch(`expected the error ${preview(step.error)}, got the result ${preview(answer.result)}`);
    }
    if (step.error === undefined && "error" in answer) throw new Mismatch(`expected a result, got the error ${preview(answer.error, 400)}`);
    // By default any result passes, null too.
    if (step.error === undefined && (step.result ?? "<any>") === "<any>") return;
    const found = step.error !== undefined ? differences(step.error, answer.error, this.captures) : differences(step.result, answer.result, this.captures);
    if (found.length) throw new Mismatch(listed(found));
  }

  async #find(step, agent, pattern, extract) {
    const start = this.#position;
    let place = -1;
    await agent.until(() => {
      while (place < 0 && this.#position < agent.traffic.length) {
        const { direction, message } = agent.traffic[this.#position];
        const value = direction === "<-" ? extract(message) : undefined;
        if (value !== undefined && differences(pattern, value, this.captures).length === 0) place = this.#position;
        this.#position++;
      }
      return place >= 0;
    }, this.#seconds(step));
    if (place < 0) this.#position = start;
    return place;
  }

  async #expect(step, agent) {
    const whole = (message) => message;
    if ((await this.#find(step, agent, step.expect, whole)) < 0) throw this.#missing(step, agent, "message", step.expect, whole);
  }

  async #events(step, agent) {
    const start = this.#position;
    const extract = this.#eventsOf(step, agent);
    const got = [];
    for (const pattern of step.events.map((one) => this.#asEvent(one))) {
      const place = await this.#find(step, agent, pattern, extract);
      if (place < 0) throw this.#missing(step, agent, "event", pattern, extract);
      got.push(place);
    }
    if (!step.only) return;
    const others = agent.traffic.slice(start, this.#position).flatMap(({ direction, message }, offset) => {
      const event = direction === "<-" && !got.includes(start + offset) ? extract(message) : undefined;
      return event && !(step.ignore ?? []).includes(event[this.protocol.feed.kind]) ? [preview(event, 120)] : [];
    });
    if (others.length) throw new Mismatch(`unexpected events:\n${listed(others)}`);
  }

  async #anyOrder(step, agent) {
    const start = this.#position;
    const extract = this.#eventsOf(step, agent);
    const taken = [];
    for (const pattern of step.events_in_any_order.map((one) => this.#asEvent(one))) {
      this.#position = start;
      let place;
      do place = await this.#find(step, agent, pattern, extract);
      while (taken.includes(place));
      if (place < 0) throw this.#missing(step, agent, "event", pattern, extract);
      taken.push(place);
    }
    this.#position = Math.max(start, ...taken.map((place) => place + 1));
  }

  async #answer(step, agent) {
    const answered = agent.traffic.filter((one) => one.direction === "->" && !("method" in one.message)).map((one) => one.message.id);
    let request;
    let close = [];
    await agent.until(() => {
      request = agent.incoming().find((message) => {
        if (message?.method !== step.answer || !("id" in message) || answered.includes(message.id)) return false;
        close = differences(step.params ?? {}, message.params, this.captures);
        return close.length === 0;
      });
      return request !== undefined;
    }, this.#seconds(step));
    if (!request) {
      const hint = close.length ? `; the last ${step.answer} differs:\n${listed(close)}` : agent.note();
      throw new Mismatch(`no matching request within ${this.#seconds(step)} s${hint}`);
    }
    const part = step.error !== undefined ? { error: fill(step.error, this.captures) } : { result: fill(step.result ?? null, this.captures) };
    agent.send({ id: request.id, ...part });
  }

  async #never(step, agent, start) {
    const pattern = this.#asEvent(step.never);
    const extract = this.protocol.feed.kind in Object(pattern) ? (message) => agent.eventOf(message) : (message) => message;
    let found;
    const seen = () => {
      found = agent.incoming(start).map(extract).find((value) => value !== undefined && differences(pattern, value, { ...this.captures }).length === 0);
      return found !== undefined;
    };
    if (await agent.until(seen, step.for ?? 0.2)) throw new Mismatch(`unexpected message: ${preview(found, 400)}`);
  }

  async #close(step, agent) {
    this.#closed = true;
    const seconds = step.within ?? 5;
    const code = await agent.closeInput(seconds);
    if (code === undefined) throw new Mismatch(`the agent is still running ${seconds} s after its input was closed`);
    const wanted = step.exit === undefined ? 0 : step.exit;
    if (wanted !== null && code !== wanted) throw new Mismatch(`expected exit code ${wanted}, got ${code}`);
  }

  async #finish(agent) {
    // Wait for surplus messages, and for answers on their way.
    await agent.until(() => agent.unanswered().length === 0, this.within);
    await agent.until(() => false, 0.05);
    if (!this.script.unchecked) agent.problems.push(...agent.unanswered());
    if ((await agent.closeInput()) === undefined) agent.problems.push("the agent is still running 5 s after its input was closed");
  }

  #missing(step, agent, what, pattern, extract) {
    const values = agent.incoming(this.#position).map(extract).filter((value) => value !== undefined);
    const near = values
      .map((value) => ({ value, found: differences(pattern, value, { ...this.captures }) }))
      .filter(({ found }) => !found.some((one) => ["method", "id", this.protocol.feed.kind].includes(one.split(":")[0])))
      .sort((one, other) => one.found.length - other.found.length);
    const text = `no ${what} like ${preview(pattern)} within ${this.#seconds(step)} s${agent.note()}`;
    if (!near.length) return new Mismatch(text);
    return new Mismatch(`${text}\n  the closest ${what} is ${preview(near[0].value, 400)}\n${listed(near[0].found)}`);
  }

  #eventsOf(step, agent) {
    const session = step.session === undefined ? undefined : fill(step.session, this.captures);
    return (message) => agent.eventOf(message, session);
  }

  #asEvent(pattern) {
    return typeof pattern === "string" ? { [this.protocol.feed.kind]: pattern } : pattern;
  }
}

const listed = (lines) => lines.map((line) => `    ${line}`).join("\n");
