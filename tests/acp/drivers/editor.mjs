// An editor on the npm package @agentclientprotocol/sdk; prints what it has seen, and all messages, as JSON.
// See reach.mjs for the arguments.
import { readFile, writeFile } from "node:fs/promises";
import { credentials, cwd, end, load, messages, stream } from "./reach.mjs";

const { client, methods } = await load(".");

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
    ...credentials,
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
console.log(JSON.stringify({ ...seen, messages }));
