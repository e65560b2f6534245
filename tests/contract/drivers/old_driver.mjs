// Run one scenario with a Node SDK from before 1.0 and print the observations as one JSON object.
//
// The plan is the first argument, the folder of the SDK the second. `old_driver.py` takes the same plan and prints
// the same observations.

import { once } from "node:events";
import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const TIME_LIMIT_MS = 30_000;

const plan = JSON.parse(process.argv[2]);
const sdkFolder = pathToFileURL(process.argv[3] + "/");
const { CopilotClient, defineTool } = await import(new URL("dist/index.js", sdkFolder));

const { version } = JSON.parse(readFileSync(new URL("package.json", sdkFolder), "utf8"));
const seen = {
    sdk: version,
    answers: [],
    events: [],
    history: [],
    tool_arguments: [],
    complaints: [],
    stderr: [],
    report: {},
};
const waiting = [];
let client;
let session;

for (const level of ["warn", "error"]) {
    console[level] = (...parts) => seen.complaints.push(parts.map(String).join(" "));
}
process.on("unhandledRejection", (reason) => seen.complaints.push(String(reason?.stack ?? reason)));

// The SDK passes the server's stderr through, one prefixed line at a time.
process.stderr.write = (text) => {
    seen.stderr.push(String(text));
    return true;
};

function onEvent(event) {
    seen.events.push(event);
    waiting.filter(({ type }) => type === event.type).forEach(({ resolve }) => resolve());
}

function until(type) {
    if (seen.events.some((event) => event.type === type)) {
        return Promise.resolve();
    }
    return new Promise((resolve) => waiting.push({ type, resolve }));
}

// The host's answer to every permission request, in the form of the SDK version.
function decision() {
    if (version.startsWith("0.3.")) {
        return { kind: plan.rejection ? "reject" : "approve-once" };
    }
    return { kind: plan.rejection ? "denied-interactively-by-user" : "approved" };
}

function sessionOptions() {
    const encrypt = defineTool("encrypt_string", {
        description: "Encrypts a string",
        parameters: { type: "object", properties: { input: { type: "string" } }, required: ["input"] },
        handler: async (args) => {
            seen.tool_arguments.push(args);
            if (plan.scenario === "call_back") {
                seen.report.during_the_call = {
                    pong: (await client.ping("from a tool")).message,
                    last_event: (await session.getMessages()).at(-1).type,
                };
            }
            return args.input.toUpperCase();
        },
    });
    const provider = plan.provider && {
        type: plan.provider.type,
        baseUrl: plan.provider.base_url,
        apiKey: plan.provider.api_key,
    };
    return {
        streaming: plan.streaming,
        tools: [encrypt],
        ...(plan.decides && {
            onPermissionRequest: ({ kind }) => {
                (seen.report.permission_kinds ??= []).push(kind);
                return decision();
            },
        }),
        ...(plan.model && { model: plan.model }),
        ...(provider && { provider }),
        ...(plan.excluded_tools && { excludedTools: plan.excluded_tools }),
        ...(plan.system_message && { systemMessage: { mode: "append", content: plan.system_message } }),
    };
}

async function openSession() {
    session = plan.session_id
        ? await client.resumeSession(plan.session_id, sessionOptions())
        : await client.createSession(sessionOptions());
    session.on(onEvent);
    seen.session_id = session.sessionId;
}

async function ask(prompt) {
    const attachments = plan.attachments;
    const message = await session.sendAndWait({ prompt, ...(attachments && { attachments }) });
    seen.answers.push(message?.data.content ?? null);
}

// Create or resume a session and send the prompts one after the other.
async function converse() {
    await openSession();
    for (const prompt of plan.prompts) {
        await ask(prompt);
    }
    seen.history = await session.getMessages();
}

const SCENARIOS = {
    converse,
    call_back: converse,

    // Abort the first prompt after its first delta, then ask the second.
    async abort() {
        await openSession();
        await session.send({ prompt: plan.prompts[0] });
        await until("assistant.message_delta");
        await session.abort();
        await until("session.idle");
        await ask(plan.prompts[1]);
        seen.history = await session.getMessages();
    },

    // Request the server's status, models and sessions, and send a prompt.
    async inspect() {
        seen.report.pong = (await client.ping("hello")).message;
        seen.report.protocol = (await client.getStatus()).protocolVersion;
        seen.report.authenticated = (await client.getAuthStatus()).isAuthenticated;
        seen.report.models = (await client.listModels()).map((model) => model.id);
        await converse();
        seen.report.sessions = (await client.listSessions()).map((one) => one.sessionId);
    },
};

async function run() {
    client = new CopilotClient({
        cwd: plan.working_directory,
        cliPath: plan.executable,
        logLevel: "error",
        useStdio: plan.transport.kind === "stdio",
    });
    await client.start();
    const server = client.cliProcess;
    await SCENARIOS[plan.scenario]();
    const exited = server.exitCode === null ? once(server, "exit") : undefined;
    seen.complaints.push(...(await client.stop()).map(String));
    await exited;
}

let timer;
const tooLate = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no end after ${TIME_LIMIT_MS} ms`)), TIME_LIMIT_MS);
});
try {
    await Promise.race([run(), tooLate]);
} catch (error) {
    seen.failure = String(error?.stack ?? error);
    await client?.forceStop();
}
clearTimeout(timer);
// Exit explicitly: 0.1.17 leaves the timer of each `sendAndWait` running.
process.stdout.write(JSON.stringify(seen) + "\n", () => process.exit());
