// Three clients with the official Node SDK share a session; each comes to the server by a connection of its own.
//
// The twin of `three_sdk_clients.py`: `three_sdk_clients.mjs URL MODEL_URL SDK_FOLDER`.

import { pathToFileURL } from "node:url";

const [url, modelUrl, sdkFolder] = process.argv.slice(2);
const { CopilotClient, RuntimeConnection, approveAll, defineTool } = await import(
    new URL("dist/index.js", pathToFileURL(sdkFolder + "/"))
);

const options = {
    model: "fake-model",
    streaming: true,
    onPermissionRequest: approveAll,
    provider: { type: "openai", baseUrl: modelUrl, apiKey: "key" },
};
const tool = defineTool("weather", {
    description: "The weather",
    parameters: { type: "object" },
    handler: () => "sunny",
    skipPermission: true,
});
const clients = [1, 2, 3].map(() => new CopilotClient({ connection: RuntimeConnection.forUri(url) }));
for (const client of clients) {
    await client.start();
}
const [first, second, third] = clients;
const created = await first.createSession(options);
const resumed = await second.resumeSession(created.sessionId, options);
const helper = await third.resumeSession(created.sessionId, { ...options, tools: [tool] });

const seen = { first: [], third: [] };
const ended = new Promise((resolve) => {
    const note = (client, { type }) => {
        // The first client may be told of the third's arrival before it listens, or after.
        if (type !== "session.resume") {
            seen[client].push(type);
        }
        const ends = Object.values(seen).map((types) => types.filter((one) => one === "session.idle").length);
        if (ends.every((count) => count === 2)) {
            resolve();
        }
    };
    created.on((event) => note("first", event));
    helper.on((event) => note("third", event));
});
const answer = await resumed.sendAndWait({ prompt: "the weather?" });
const again = await created.sendAndWait({ prompt: "and now?" });
const listed = (await second.listSessions()).map((session) => session.sessionId);
// Only the first two clients have waited for the ends of their prompts.
await ended;
console.log(
    JSON.stringify({
        answers: [answer.data.content, again.data.content],
        seen,
        listed: listed.length === 1 && listed[0] === created.sessionId,
    }),
);
for (const client of clients) {
    await client.stop();
}
