// An editor of version 2 on the npm package @agentclientprotocol/sdk, with an MCP server of its own; prints what it
// has seen as JSON. The arguments are the folder of the package, the agent's command and a working directory.
import { spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const [folder, command, cwd] = process.argv.slice(2);
const sdk = `${folder}/node_modules/@agentclientprotocol/sdk`;
const { exports } = JSON.parse(await readFile(`${sdk}/package.json`, "utf8"));
const load = (name) => import(pathToFileURL(`${sdk}/${exports[name].import}`).href);
const { client, methods, ndJsonStream, McpOverAcpProvider } = await load("./experimental/v2/unstable");

// The agent warns where a busy machine holds it up.
const agent = spawn(command, ["acp", "--log-level", "error"], { stdio: ["pipe", "pipe", "inherit"] });
const exited = new Promise((resolve) => agent.once("exit", resolve));
const stream = ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout));
const updates = [];
const asked = [];
let onUpdate = () => {};
const mcp = new McpOverAcpProvider();
const app = client({ name: "driver" })
  .onRequest(methods.client.mcp.message, mcp.handleRequest)
  .onRequest(methods.client.session.requestPermission, async ({ params }) => {
    asked.push(params.title);
    return { outcome: { outcome: "selected", optionId: params.options[0].optionId } };
  })
  .onNotification(methods.client.session.update, async ({ params }) => {
    updates.push(params.update);
    onUpdate(params.update);
  });

const served = [];
const complete = { resultType: "complete", ttlMs: 0, cacheScope: "private" };
const results = {
  "server/discover": {
    ...complete,
    supportedVersions: ["2026-07-28"],
    capabilities: { tools: {} },
    serverInfo: { name: "ide", version: "1" },
  },
  "tools/list": {
    ...complete,
    tools: [{ name: "selection", description: "Return the selection", inputSchema: { type: "object" } }],
  },
  "tools/call": { resultType: "complete", content: [{ type: "text", text: "three lines" }] },
};
const handler = ({ method }) => {
  served.push(method);
  return { result: results[method] };
};

const text = (value) => [{ type: "text", text: value }];
const until = (fits) =>
  new Promise((resolve) => {
    onUpdate = (update) => fits(update) && resolve(update);
  });
const idle = () => until((update) => update.sessionUpdate === "state_update" && update.state === "idle");
const { session } = methods.agent;

const seen = await app.connectWith(stream, async (ctx) => {
  const hello = await ctx.request(methods.agent.initialize, {
    protocolVersion: 2,
    info: { name: "driver", version: "1" },
    capabilities: {},
  });
  const tools = mcp.registerServer(ctx, { name: "ide", handler });
  const { sessionId } = await ctx.request(session.new, { cwd, mcpServers: [tools.declaration] });
  const ended = idle();
  const accepted = await ctx.request(session.prompt, { sessionId, prompt: text("please edit") });
  const { stopReason } = await ended;
  const thinking = until((update) => update.sessionUpdate === "agent_message_chunk");
  await ctx.request(session.prompt, { sessionId, prompt: text("please hang") });
  await thinking;
  const stopped = idle();
  await ctx.notify(session.cancel, { sessionId });
  const cancelled = (await stopped).stopReason;
  const listed = await ctx.request(session.list, {});
  const before = updates.length;
  // This client may deliver the response before earlier updates.
  const replayed = idle();
  await ctx.request(session.resume, { sessionId, cwd, replayFrom: { type: "start" } });
  await replayed;
  const kinds = (some) => [...new Set(some.map((one) => one.sessionUpdate))].sort();
  return {
    version: hello.protocolVersion,
    echoed: updates.some((one) => one.sessionUpdate === "user_message" && one.messageId === accepted.messageId),
    stop: stopReason,
    cancelled,
    listed: listed.sessions.map((one) => one.title),
    replayed: kinds(updates.slice(before)),
    kinds: kinds(updates),
    asked,
    served,
  };
});
agent.stdin.end();
seen.exit = await exited;
console.log(JSON.stringify(seen));
