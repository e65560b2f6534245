// Serve a scripted model on loopback: OpenAI chat completions, OpenAI Responses and Anthropic messages.

import { createServer } from "node:http";

const PLACEHOLDER = /\{\{\s*(last_user|last_tool_result|model)\s*\}\}/g;
const MOST_BYTES = 64 * 1024 * 1024;

/**
 * Serve a script of the scripted model. `url` is the base URL for an OpenAI-compatible provider, `anthropicUrl` that
 * for the SDK of Anthropic; `requests` are the received bodies.
 */
export async function serveModel(script) {
  checkModel(script);
  const requests = [];
  const attempts = new Map();
  const server = createServer((request, response) => {
    // The connection breaks where the script wants it to.
    answer(script, requests, attempts, request, response).catch(() => response.destroy());
  });
  await new Promise((resolve, reject) => {
    server.once("error", reject);
    server.listen(0, "127.0.0.1", resolve);
  });
  const origin = `http://127.0.0.1:${server.address().port}`;
  const close = () => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  };
  return { url: `${origin}/v1`, anthropicUrl: origin, requests, close, [Symbol.asyncDispose]: close };
}

function checkModel(script) {
  if (Array.isArray(script?.turns) === Array.isArray(script?.prompts)) throw new Error("model: give either 'turns' or 'prompts'");
}

async function answer(script, requests, attempts, request, response) {
  const path = request.url.split("?")[0];
  const json = (value, status = 200, headers = {}) => {
    response.writeHead(status, { "content-type": "application/json", ...headers });
    response.end(JSON.stringify(value));
  };
  if (request.method === "GET" && path.endsWith("/models")) return json({ object: "list", data: [{ id: "scripted", object: "model" }] });
  const ending = Object.keys(WIRES).find((one) => path.endsWith(one));
  if (request.method !== "POST" || !ending) return json(WIRES["/chat/completions"].failure(`unknown endpoint ${request.method} ${path}`), 404);
  const wire = WIRES[ending];
  let fields;
  let call;
  try {
    fields = JSON.parse(await bodyOf(request));
    call = wire.read(fields);
  } catch (error) {
    return json(wire.failure(`expected a JSON object with messages: ${error.message}`), 400);
  }
  requests.push(fields);
  const { turn, number, refusal } = choose(script, call);
  const problem = refusal ?? unmet(turn.expect, call, number);
  if (problem) return json(wire.failure(problem), 400);
  const key = `${call.messages.length}:${number}`;
  const attempt = attempts.get(key) ?? 0;
  const error = turn.errors?.[attempt];
  if (error) {
    attempts.set(key, attempt + 1);
    if (error.status === undefined) throw new Error("broken on purpose");
    const headers = error.retry_after_s === undefined ? {} : { "retry-after": String(error.retry_after_s) };
    return json(wire.failure(error.message ?? "scripted error", error.code), error.status, headers);
  }
  const whole = filled(turn, call);
  const wait = () => new Promise((resolve) => setTimeout(resolve, turn.delay_ms ?? 0));
  if (fields.stream !== true) {
    await wait();
    if (turn.hang) return;
    return json(wire.whole(whole, call.model));
  }
  response.writeHead(200, { "content-type": "text/event-stream" });
  const write = ([name, data]) =>
    response.write(`${name ? `event: ${name}\n` : ""}data: ${typeof data === "string" ? data : JSON.stringify(data)}\n\n`);
  const stream = wire.stream(call.model);
  for (const piece of pieces(turn, whole)) {
    if (turn.delay_ms) await wait();
    stream.piece(piece).forEach(write);
  }
  if (turn.hang) return;
  stream.end(whole).forEach(write);
  response.end();
}

async function bodyOf(request) {
  const chunks = [];
  let size = 0;
  for await (const chunk of request) {
    size += chunk.length;
    if (size > MOST_BYTES) throw new Error("too large");
    chunks.push(chunk);
  }
  return Buffer.concat(chunks).toString("utf8");
}

// --- the script ------------------------------------------------------------------------------------------------

function choose(script, call) {
  const pick = (turns, number, name) => {
    if (number < turns.length) return { turn: turns[number], number };
    if (script.after_last === "repeat" && turns.length) return { turn: turns.at(-1), number: turns.length - 1 };
    return { refusal: `${name} has no turn ${number + 1}, it ends after ${turns.length}` };
  };
  const answers = (messages) => messages.filter((one) => one.role === "assistant").length;
  if (script.turns) return pick(script.turns, answers(call.messages), "the script");
  const place = call.messages.findLastIndex((one) => one.role === "user");
  const prompt = call.messages[place]?.text ?? "";
  const entry = script.prompts.find((one) => one.when === undefined || new RegExp(one.when, "i").test(prompt));
  if (!entry) return { refusal: `the script has no prompt that matches ${JSON.stringify(prompt.slice(0, 200))}` };
  return pick(entry.turns, answers(call.messages.slice(place + 1)), entry.when === undefined ? "the script" : `the script's prompt '${entry.when}'`);
}

const lastOf = (call, role) => call.messages.findLast((one) => one.role === role)?.text ?? "";

function unmet(expect, call, number) {
  if (!expect) return undefined;
  const fails = (wanted, got) => {
    if (wanted === undefined) return false;
    return wanted.length > 2 && wanted.startsWith("/") && wanted.endsWith("/") ? !new RegExp(wanted.slice(1, -1)).test(got) : !got.includes(wanted);
  };
  const problem = (what) => `turn ${number + 1} of the script expected ${what}`;
  if (fails(expect.user, lastOf(call, "user"))) return problem(`'${expect.user}' in the last prompt`);
  if (fails(expect.system, call.system)) return problem(`'${expect.system}' in the system message`);
  if (fails(expect.tool_result, lastOf(call, "tool"))) return problem(`'${expect.tool_result}' in the last tool result`);
  if (expect.model !== undefined && expect.model !== call.model) return problem(`the model '${expect.model}', got '${call.model}'`);
  const missing = (expect.tools ?? []).filter((name) => !call.tools.includes(name));
  return missing.length ? problem(`the tools ${missing.join(", ")} on offer`) : undefined;
}

function filled(turn, call) {
  const values = { last_user: lastOf(call, "user").trim(), last_tool_result: lastOf(call, "tool"), model: call.model };
  const fill = (value) => {
    if (typeof value === "string") return value.replace(PLACEHOLDER, (_, name) => values[name]);
    if (Array.isArray(value)) return value.map(fill);
    if (value && typeof value === "object") return Object.fromEntries(Object.entries(value).map(([name, item]) => [name, fill(item)]));
    return value;
  };
  const answers = call.messages.filter((one) => one.role === "assistant").length;
  const calls = (turn.tool_calls ?? []).map((one, place) => {
    const given = fill(one.arguments ?? {});
    return { id: one.id ?? `call_${answers + 1}_${place + 1}`, name: one.name, arguments: typeof given === "string" ? given : JSON.stringify(given) };
  });
  const deltas = turn.deltas?.map(fill);
  return {
    text: deltas ? deltas.join("") : fill(turn.text ?? ""),
    deltas,
    reasoning: fill(turn.reasoning ?? ""),
    calls,
    stop: turn.stop_reason ?? (calls.length ? "tool_use" : "end_turn"),
    usage: { input: 0, output: 0, cache_read: 0, cache_write: 0, reasoning: 0, ...turn.usage },
  };
}

function pieces(turn, whole) {
  const split = (text) => text.match(/\s*\S+\s*|\s+/g) ?? [];
  return [
    ...split(whole.reasoning).map((reasoning) => ({ reasoning })),
    ...(whole.deltas ?? split(whole.text)).filter(Boolean).map((text) => ({ text })),
    ...whole.calls.map((call) => ({ call })),
  ];
}

// --- the wires -------------------------------------------------------------------------------------------------

const list = (value) => (Array.isArray(value) ? value : []);

function textOf(content, between = "\n") {
  if (typeof content === "string") return content;
  return list(content).flatMap((part) => (typeof part?.text === "string" ? [part.text] : [])).join(between);
}

/** Add a message; those of the same role that follow each other are one. */
function join(messages, role, text) {
  if (messages.at(-1)?.role === role) text = role === "tool" ? text : messages.pop().text + text;
  if (role === "tool" && messages.at(-1)?.role === role) messages.pop();
  messages.push({ role, text });
}

function chatMessages(fields) {
  if (!Array.isArray(fields?.messages)) throw new Error("messages: expected an array");
  return fields.messages;
}

const chat = {
  read(fields) {
    const system = [];
    const messages = [];
    for (const { role, content } of chatMessages(fields)) {
      if (role === "system" || role === "developer") system.push(textOf(content));
      else if (role === "tool") join(messages, "tool", textOf(content, ""));
      else messages.push({ role: role === "assistant" ? role : "user", text: textOf(content) });
    }
    return { model: String(fields.model ?? ""), system: system.join("\n\n"), messages, tools: list(fields.tools).map((one) => one?.function?.name) };
  },
  failure: (message, code = null) => ({ error: { message, type: "scripted", code } }),
  finish: (whole) => ({ tool_use: "tool_calls", max_tokens: "length", refusal: "content_filter", content_filter: "content_filter" })[whole.stop] ?? "stop",
  usage: ({ usage }) => ({
    prompt_tokens: usage.input,
    completion_tokens: usage.output,
    total_tokens: usage.input + usage.output,
    prompt_tokens_details: { cached_tokens: usage.cache_read },
    completion_tokens_details: { reasoning_tokens: usage.reasoning },
  }),
  whole(whole, model) {
    const calls = whole.calls.map((one) => ({ id: one.id, type: "function", function: { name: one.name, arguments: one.arguments } }));
    const message = {
      role: "assistant",
      content: whole.text,
      ...(whole.reasoning ? { reasoning_content: whole.reasoning } : {}),
      ...(calls.length ? { tool_calls: calls } : {}),
    };
    const choices = [{ index: 0, message, finish_reason: chat.finish(whole) }];
    return { id: "chatcmpl-scripted", object: "chat.completion", created: 0, model, choices, usage: chat.usage(whole) };
  },
  stream(model) {
    const head = { id: "chatcmpl-scripted", object: "chat.completion.chunk", created: 0, model };
    const chunk = (delta, finish_reason = null, more = {}) => [null, { ...head, choices: [{ index: 0, delta, finish_reason }], ...more }];
    let first = { role: "assistant" };
    let calls = 0;
    const delta = (value) => {
      const all = { ...first, ...value };
      first = {};
      return [chunk(all)];
    };
    return {
      piece({ text, reasoning, call }) {
        if (text !== undefined) return delta({ content: text });
        if (reasoning !== undefined) return delta({ reasoning_content: reasoning });
        return delta({ tool_calls: [{ index: calls++, id: call.id, type: "function", function: { name: call.name, arguments: call.arguments } }] });
      },
      end: (whole) => [chunk(first, chat.finish(whole), { usage: chat.usage(whole) }), [null, "[DONE]"]],
    };
  },
};

const messages = {
  read(fields) {
    const found = [];
    for (const { role, content } of chatMessages(fields)) {
      const results = list(content).filter((block) => block?.type === "tool_result");
      if (results.length) found.push({ role: "tool", text: textOf(results.at(-1).content, "") });
      const text = textOf(content);
      if (role === "assistant") found.push({ role, text });
      else if (text || !results.length) found.push({ role: "user", text });
    }
    return { model: String(fields.model ?? ""), system: textOf(fields.system), messages: found, tools: list(fields.tools).map((one) => one?.name) };
  },
  failure: (message, code = "api_error") => ({ type: "error", error: { type: code, message } }),
  stop: (whole) => (whole.stop === "content_filter" ? "refusal" : whole.stop),
  usage: ({ usage }) => ({
    input_tokens: usage.input,
    output_tokens: usage.output,
    cache_read_input_tokens: usage.cache_read,
    cache_creation_input_tokens: usage.cache_write,
  }),
  head: (model) => ({ id: "msg_scripted", type: "message", role: "assistant", model, content: [], stop_reason: null, stop_sequence: null }),
  whole(whole, model) {
    const parsed = (text) => {
      try {
        return JSON.parse(text);
      } catch {
        return {};
      }
    };
    const content = [
      ...(whole.reasoning ? [{ type: "thinking", thinking: whole.reasoning, signature: "" }] : []),
      ...(whole.text ? [{ type: "text", text: whole.text }] : []),
      ...whole.calls.map((one) => ({ type: "tool_use", id: one.id, name: one.name, input: parsed(one.arguments) })),
    ];
    return { ...messages.head(model), content, stop_reason: messages.stop(whole), usage: messages.usage(whole) };
  },
  stream(model) {
    let index = -1;
    let open;
    const event = (type, more = {}) => [type, { type, ...more }];
    const begin = [event("message_start", { message: { ...messages.head(model), usage: messages.usage({ usage: { input: 0, output: 0, cache_read: 0, cache_write: 0 } }) } })];
    const close = () => (open === undefined ? [] : [event("content_block_stop", { index })]);
    const block = (key, content_block, delta) => {
      const events = begin.splice(0);
      if (open !== key) {
        events.push(...close(), event("content_block_start", { index: ++index, content_block }));
        open = key;
      }
      return [...events, event("content_block_delta", { index, delta })];
    };
    return {
      piece({ text, reasoning, call }) {
        if (text !== undefined) return block("text", { type: "text", text: "" }, { type: "text_delta", text });
        if (reasoning !== undefined) return block("thinking", { type: "thinking", thinking: "", signature: "" }, { type: "thinking_delta", thinking: reasoning });
        return block(call.id, { type: "tool_use", id: call.id, name: call.name, input: {} }, { type: "input_json_delta", partial_json: call.arguments });
      },
      end: (whole) => [
        ...begin.splice(0),
        ...close(),
        event("message_delta", { delta: { stop_reason: messages.stop(whole), stop_sequence: null }, usage: messages.usage(whole) }),
        event("message_stop"),
      ],
    };
  },
};

const OF_THE_MODEL = ["reasoning", "function_call", "custom_tool_call"];

const responses = {
  read(fields) {
    const given = fields?.input;
    if (typeof given !== "string" && !Array.isArray(given)) throw new Error("input: expected an array or a string");
    const system = fields.instructions ? [fields.instructions] : [];
    const found = [];
    for (const item of typeof given === "string" ? [{ role: "user", content: given }] : given) {
      const kind = item?.type ?? "message";
      if (kind === "function_call_output" || kind === "custom_tool_call_output") join(found, "tool", textOf(item.output, ""));
      else if (OF_THE_MODEL.includes(kind) || item?.role === "assistant") join(found, "assistant", textOf(item.content));
      else if (item?.role === "system" || item?.role === "developer") system.push(textOf(item.content));
      else if (kind === "message") found.push({ role: "user", text: textOf(item?.content) });
    }
    return { model: String(fields.model ?? ""), system: system.join("\n\n"), messages: found, tools: list(fields.tools).map((one) => one?.name) };
  },
  failure: (message, code = null) => ({ error: { message, type: "scripted", param: null, code } }),
  reason: (whole) => ({ max_tokens: "max_output_tokens", content_filter: "content_filter" })[whole.stop],
  items: (whole) =>
    [
      whole.reasoning && { type: "reasoning", summary: [{ type: "summary_text", text: whole.reasoning }] },
      whole.text && { type: "message", role: "assistant", content: [{ type: "output_text", text: whole.text, annotations: [] }] },
      ...whole.calls.map((one) => ({ type: "function_call", call_id: one.id, name: one.name, arguments: one.arguments })),
    ]
      .filter(Boolean)
      .map((item, place) => ({ id: `item_${place}`, status: "completed", ...item })),
  whole(whole, model, status) {
    const reason = whole && responses.reason(whole);
    const { usage } = whole ?? {};
    return {
      id: "resp_scripted",
      object: "response",
      created_at: 0,
      status: status ?? (reason ? "incomplete" : "completed"),
      error: null,
      incomplete_details: reason ? { reason } : null,
      instructions: null,
      metadata: {},
      model,
      output: whole ? responses.items(whole) : [],
      parallel_tool_calls: true,
      tool_choice: "auto",
      tools: [],
      usage: usage
        ? {
            input_tokens: usage.input,
            input_tokens_details: { cached_tokens: usage.cache_read },
            output_tokens: usage.output,
            output_tokens_details: { reasoning_tokens: usage.reasoning },
            total_tokens: usage.input + usage.output,
          }
        : null,
    };
  },
  stream(model) {
    let number = 0;
    let place = -1;
    let open;
    const event = (type, more) => [type, { type, sequence_number: number++, ...more }];
    const at = (type, more) => event(type, { item_id: `item_${place}`, output_index: place, ...more });
    const begin = () => (number === 0 ? [event("response.created", { response: responses.whole(undefined, model, "in_progress") })] : []);
    const close = () => {
      if (!open) return [];
      const { kind, text, item } = open;
      open = undefined;
      const done = { ...item, status: "completed" };
      if (kind === "message") {
        done.content = [{ type: "output_text", text, annotations: [] }];
        return [
          at("response.output_text.done", { content_index: 0, text }),
          at("response.content_part.done", { content_index: 0, part: done.content[0] }),
          event("response.output_item.done", { output_index: place, item: done }),
        ];
      }
      if (kind === "reasoning") {
        done.summary = [{ type: "summary_text", text }];
        return [
          at("response.reasoning_summary_text.done", { summary_index: 0, text }),
          at("response.reasoning_summary_part.done", { summary_index: 0, part: done.summary[0] }),
          event("response.output_item.done", { output_index: place, item: done }),
        ];
      }
      done.arguments = text;
      return [at("response.function_call_arguments.done", { arguments: text }), event("response.output_item.done", { output_index: place, item: done })];
    };
    const item = (kind, more, part) => {
      if (open?.kind === kind && kind !== "function_call") return [];
      const events = close();
      place++;
      open = { kind, text: "", item: { type: kind, id: `item_${place}`, status: "in_progress", ...more } };
      return [...events, event("response.output_item.added", { output_index: place, item: open.item }), ...(part ? [at(...part)] : [])];
    };
    return {
      piece({ text, reasoning, call }) {
        const events = begin();
        if (text !== undefined) {
          const part = ["response.content_part.added", { content_index: 0, part: { type: "output_text", text: "", annotations: [] } }];
          events.push(...item("message", { role: "assistant", content: [] }, part));
          events.push(at("response.output_text.delta", { content_index: 0, delta: text }));
        } else if (reasoning !== undefined) {
          const part = ["response.reasoning_summary_part.added", { summary_index: 0, part: { type: "summary_text", text: "" } }];
          events.push(...item("reasoning", { summary: [] }, part));
          events.push(at("response.reasoning_summary_text.delta", { summary_index: 0, delta: reasoning }));
        } else {
          events.push(...item("function_call", { call_id: call.id, name: call.name, arguments: "" }));
          events.push(at("response.function_call_arguments.delta", { delta: call.arguments }));
        }
        open.text += text ?? reasoning ?? call.arguments;
        return events;
      },
      end(whole) {
        const response = responses.whole(whole, model);
        return [...begin(), ...close(), event(`response.${response.status}`, { response })];
      },
    };
  },
};

const WIRES = { "/chat/completions": chat, "/responses": responses, "/messages": messages };
