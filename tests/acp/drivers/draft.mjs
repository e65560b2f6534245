// An editor of version 2 on the npm package @agentclientprotocol/sdk, with an MCP server of its own; prints what it
// has seen, and all messages, as JSON. See reach.mjs for the arguments.
import { credentials, cwd, end, load, messages, stream } from "./reach.mjs";

const { client, methods, McpOverAcpProvider } = await load("./experimental/v2/unstable");

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
    ...credentials,
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
seen.exit = await end();
console.log(JSON.stringify({ ...seen, messages }));
