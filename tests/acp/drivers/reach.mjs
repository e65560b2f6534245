// Connects an editor on the npm package @agentclientprotocol/sdk with an agent, and keeps every message.
// The arguments of an editor are the folder of the package, the agent's command or a URL of tcp:, ws: or http:, a
// working directory, and the arguments of the command. The token of a URL is in the environment.
import { spawn } from "node:child_process";
import { readFile } from "node:fs/promises";
import { createConnection } from "node:net";
import { Readable, Writable } from "node:stream";
import { pathToFileURL } from "node:url";

const [folder, where, folderOfSession, ...given] = process.argv.slice(2);
export const cwd = folderOfSession;
const sdk = `${folder}/node_modules/@agentclientprotocol/sdk`;
const { exports } = JSON.parse(await readFile(`${sdk}/package.json`, "utf8"));
export const load = async (name) => import(pathToFileURL(`${sdk}/${exports[name].import}`).href);
const { ndJsonStream } = await load(".");

const token = process.env.COPILOT_CONNECTION_TOKEN;
const headers = { Authorization: `Bearer ${token}` };
// Over TCP, there are no headers.
export const credentials = token ? { _meta: { jumpseat: { token } } } : {};

// All messages in both directions, for a check against the schemas.
export const messages = [];
const recorded = (from) =>
  new TransformStream({
    transform(message, controller) {
      messages.push({ from, message });
      controller.enqueue(message);
    },
  });

function recording({ readable, writable }) {
  const sent = recorded("client");
  sent.readable.pipeTo(writable).catch(() => {});
  return { readable: readable.pipeThrough(recorded("agent")), writable: sent.writable };
}

// Returns a stream to the agent, and what ends the connection and returns the exit code.
async function connect() {
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
  const options = given.length > 0 ? given : ["--acp", "--stdio", "--log-level", "error"];
  const agent = spawn(where, options, { stdio: ["pipe", "pipe", "inherit"] });
  const exited = new Promise((resolve) => agent.once("exit", resolve));
  return [ndJsonStream(Writable.toWeb(agent.stdin), Readable.toWeb(agent.stdout)), () => (agent.stdin.end(), exited)];
}

const [plain, end] = await connect();
export const stream = recording(plain);
export { end };
