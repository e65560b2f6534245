// An editor on the npm package @agentclientprotocol/sdk; prints the received updates as JSON.
// The arguments are the folder of the package, the agent's command and a working directory. Instead of a command,
// there may be the URL of a server: tcp:, ws: or http:. Its token is in the environment.
import { spawn } from "node:child_process";
import { readFile, writeFile } from "node:fs/promises";
import { createConnection } from "node:net";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const [folder, command, cwd] = process.argv.slice(2);
const sdk = `${folder}/node_modules/@agentclientprotocol/sdk`;
const { exports } = JSON.parse(await readFile(`${sdk}/package.json`, "utf8"));
const load = async (name) => import(pathToFileURL(`${sdk}/${exports[name].import}`).href);
const { client, methods, ndJsonStream } = await load(".");

const token = process.env.COPILOT_CONNECTION_TOKEN;
const headers = { Authorization: `Bearer ${token}` };

// Returns a stream to the agent, and what ends the connection and returns the exit code.
async function reach(where) {
  const { protocol, hostname, port } = URL.canParse(where) ? new URL(where) : {};
  const nothing = async () => 0;
  if (protocol === "ws:") {
    const { createWebSocketStream } = await load("./experimental/ws-client");
    const { WebSocket } = await import(pathToFileURL(`${folder}/node_modules/ws/wrapper.mjs`).href);
    return [createWebSocketStream(where, { WebSocket, headers }), nothing];
  }
  if (protocol === "http:") {
    const { createHttpStream } = await load("./experimental/http-client");
    return [createHttpStream(where, { headers }), nothing];
  }
  if (protocol === "tcp:") {
    const socket = createConnection(port, hostname);
    return [ndJsonStream(Writable.toWeb(socket), Readable.toWeb(socket)), async () => (socket.destroy(), 0)];
  }
  // The agent warns where a busy machine holds it up.
  const agent = spawn(where, ["--acp", "--stdio", "--log-level", "error"], { stdio: ["pipe", "pipe", "inherit"] });
  const exited = new Promise((resolve) => agent.once("exit", resolve));
  return [ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout)), () => (agent.stdin.end(), exited)];
}

const [stream, end] = await reach(command);
const updates = [];
const asked = [];
let onUpdate = () => {};
const app = client({ name: "driver" })
  .onRequest(methods.client.session.requestPermission, async ({ params }) => {
    asked.push(params.toolCall.title);
    return { outcome: { outcome: "selected", optionId: params.options[0].optionId } };
  })
  .onRequest(methods.client.fs.readTextFile, async ({ params }) => ({ content: await readFile(params.path, "utf8") }))
  .onRequest(methods.client.fs.writeTextFile, async ({ params }) => {
    await writeFile(params.path, params.content);
    return {};
  })
  .onNotification(methods.client.session.update, async ({ params }) => {
    updates.push(params.update);
    onUpdate(params.update);
  });

const text = (value) => [{ type: "text", text: value }];
const kinds = (some) => [...new Set(some.map((one) => one.sessionUpdate))].sort();
const { session } = methods.agent;

const seen = await app.connectWith(stream, async (ctx) => {
  const hello = await ctx.request(methods.agent.initialize, {
    protocolVersion: 1,
    clientCapabilities: { fs: { readTextFile: true, writeTextFile: true } },
    // Over TCP, there are no headers.
    ...(token ? { _meta: { jumpseat: { token } } } : {}),
  });
  await ctx.request(methods.agent.authenticate, { methodId: hello.authMethods[0].id });
  const opened = await ctx.request(session.new, { cwd, mcpServers: [] });
  const { sessionId } = opened;
  // In the second one, plan mode, nothing is changed.
  for (const at of [1, 0]) await ctx.request(session.setMode, { sessionId, modeId: opened.modes.availableModes[at].id });
  const answer = await ctx.request(session.prompt, { sessionId, prompt: text("please edit") });
  const message = () =>
    new Promise((resolve) => {
      onUpdate = (update) => update.sessionUpdate === "agent_message_chunk" && resolve();
    });
  const thinking = message();
  const hanging = ctx.request(session.prompt, { sessionId, prompt: text("please hang") });
  await thinking;
  await ctx.notify(session.cancel, { sessionId });
  const cancelled = await hanging;
  const listed = await ctx.request(session.list, {});
  const before = updates.length;
  // This client may deliver the response before earlier updates.
  const replayed = message();
  await ctx.request(session.load, { sessionId, cwd, mcpServers: [] });
  await replayed;
  return {
    version: hello.protocolVersion,
    options: opened.configOptions.map((one) => one.id),
    stop: answer.stopReason,
    cancelled: cancelled.stopReason,
    listed: listed.sessions.map((one) => one.title),
    replayed: kinds(updates.slice(before)),
    kinds: kinds(updates),
    asked,
  };
});
seen.exit = await end();
console.log(JSON.stringify(seen));
