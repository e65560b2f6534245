// Run one scenario with the official Node SDK and print the observations as one JSON object.
//
// The plan is the first argument, the folder of the SDK the second. `driver.py` takes the same plan and prints the
// same observations.

import { readFileSync } from "node:fs";
import { pathToFileURL } from "node:url";

const TIME_LIMIT_MS = 30_000;

const plan = JSON.parse(process.argv[2]);
const sdkFolder = pathToFileURL(process.argv[3] + "/");
const { CopilotClient, RuntimeConnection, approveAll, defineTool } = await import(
    new URL("dist/index.js", sdkFolder)
);

const seen = {
    sdk: JSON.parse(readFileSync(new URL("package.json", sdkFolder), "utf8")).version,
    answers: [],
    events: [],
    history: [],
    tool_arguments: [],
    asked: [],
    complaints: [],
    stderr: [],
};
const waiting = [];

for (const level of ["warn", "error"]) {
    console[level] = (...parts) => seen.complaints.push(parts.map(String).join(" "));
}
process.on("unhandledRejection", (reason) => seen.complaints.push(String(reason?.stack ?? reason)));

// The SDK passes the server's stderr through, one prefixed line at a time.
process.stderr.write = (text) => {
    seen.stderr.push(String(text));
    return true;
};

function connection() {
    const { kind, url, token } = plan.transport;
    switch (kind) {
        case "stdio":
            return RuntimeConnection.forStdio({ path: plan.executable });
        case "tcp":
            return RuntimeConnection.forTcp({ path: plan.executable });
        case "uri":
            return RuntimeConnection.forUri(url, { connectionToken: token });
    }
}

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

// The files of one session, in an object of the application.
function memoryFiles(files) {
    const read = async (path) => {
        if (!(path in files)) {
            throw Object.assign(new Error(path), { code: "ENOENT" });
        }
        return files[path];
    };
    const below = (path) => Object.keys(files).filter((name) => name.startsWith(`${path}/`));
    return {
        readFile: read,
        writeFile: async (path, content) => void (files[path] = content),
        appendFile: async (path, content) => void (files[path] = (files[path] ?? "") + content),
        exists: async (path) => path in files,
        stat: async (path) => {
            const now = new Date().toISOString();
            const size = Buffer.byteLength(await read(path));
            return { isFile: true, isDirectory: false, size, mtime: now, birthtime: now };
        },
        mkdir: async () => {},
        readdir: async (path) => below(path).map((name) => name.slice(path.length + 1)),
        readdirWithTypes: async () => [],
        rm: async (path) => void delete files[path],
        rename: async (source, destination) => {
            files[destination] = await read(source);
            delete files[source];
        },
    };
}

function sessionOptions() {
    const encrypt = defineTool("encrypt_string", {
        description: "Encrypts a string",
        parameters: { type: "object", properties: { input: { type: "string" } }, required: ["input"] },
        handler: (args) => {
            seen.tool_arguments.push(args);
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
        workingDirectory: plan.working_directory,
        tools: [encrypt],
        onPermissionRequest: plan.rejection ? () => ({ kind: "reject", ...plan.rejection }) : approveAll,
        onEvent,
        clientName: "contract-host",
        customAgents: [{ name: "planner", displayName: "Planner", prompt: "You plan." }],
        ...(plan.model && { model: plan.model }),
        ...(provider && { provider }),
        ...(plan.callbacks && callbacks(plan.callbacks)),
    };
}

// Handlers of every kind, which record their inputs and answer as planned; "throw" throws.
function callbacks(answers) {
    const handler = (name, answer) => (given) => {
        seen.asked.push([name, given]);
        if (answer === "throw") {
            throw new Error("the handler is broken");
        }
        return answer;
    };
    const option = (name) => `on${name[0].toUpperCase()}${name.slice(1)}`;
    const hooks = Object.entries(answers.hooks).map(([name, answer]) => [option(name), handler(name, answer)]);
    return {
        hooks: Object.fromEntries(hooks),
        onUserInputRequest: handler("question", answers.question),
        onElicitationRequest: handler("form", answers.form),
        systemMessage: { mode: "customize", sections: { tone: { action: handler("transform", answers.tone) } } },
    };
}

async function openSession(client) {
    const session = plan.session_id
        ? await client.resumeSession(plan.session_id, sessionOptions())
        : await client.createSession(sessionOptions());
    seen.session_id = session.sessionId;
    return session;
}

async function ask(session, options) {
    const message = await session.sendAndWait(options);
    seen.answers.push(message?.data.content ?? null);
}

const SCENARIOS = {
    // Create or resume a session and send the prompts one after the other; show a form if one is planned.
    async converse(client) {
        const session = await openSession(client);
        for (const prompt of plan.prompts) {
            await ask(session, { prompt });
        }
        if (plan.callbacks) {
            seen.report = { confirmed: await session.ui.confirm("Sure?") };
        }
        seen.history = await session.getEvents();
        if (plan.callbacks) {
            await session.disconnect();
        }
    },

    // Abort the first prompt after its first delta, then ask the second.
    async abort(client) {
        const session = await openSession(client);
        await session.send({ prompt: plan.prompts[0] });
        await until("assistant.message_delta");
        await session.abort();
        await until("session.idle");
        await ask(session, { prompt: plan.prompts[1] });
        seen.history = await session.getEvents();
    },

    // Send the first prompt with attachments and a header, then the second to another model.
    async choose(client) {
        const session = await openSession(client);
        await ask(session, {
            prompt: plan.prompts[0],
            attachments: plan.attachments,
            requestHeaders: { "x-message": "first" },
        });
        await session.setModel("second-model", { reasoningEffort: "high" });
        await ask(session, { prompt: plan.prompts[1] });
        const { agents } = await session.rpc.agent.list();
        seen.report = {
            model: (await session.rpc.model.getCurrent()).modelId,
            agents: agents.map((agent) => [agent.name, agent.displayName]),
        };
        seen.history = await session.getEvents();
    },

    // Request the server's status and sessions, before and after one prompt and after deleting the session.
    async inspect(client) {
        const sessionIds = async () => (await client.listSessions()).map((session) => session.sessionId);
        const knowsSession = async (id) => (await client.getSessionMetadata(id)) !== undefined;
        const report = (seen.report = {
            pong: (await client.ping("hello")).message,
            status: await client.getStatus(),
            authenticated: (await client.getAuthStatus()).isAuthenticated,
            models: (await client.listModels()).map((model) => model.id),
            sessions_at_first: await sessionIds(),
        });
        await SCENARIOS.converse(client);
        report.sessions = await sessionIds();
        report.last_session = await client.getLastSessionId();
        report.known = await knowsSession(seen.session_id);
        await client.deleteSession(seen.session_id);
        report.sessions_at_last = await sessionIds();
        report.known_at_last = await knowsSession(seen.session_id);
    },

    // Open a session per login, request its login status and send the prompt.
    async identify(client) {
        const report = (seen.report = { logins: [] });
        for (const login of plan.logins) {
            const asked = [];
            const entry = { asked };
            report.logins.push(entry);
            const options = { ...sessionOptions(), model: login.model };
            if (login.gives) {
                options.gitHubTokenProvider = ({ host, sessionId, reason }) => {
                    asked.push({ host, session: sessionId, reason });
                    return login.gives;
                };
            } else if (login.token) {
                options.gitHubToken = login.token;
            }
            let session;
            try {
                session = await client.createSession(options);
            } catch (error) {
                entry.error = String(error?.message ?? error);
                continue;
            }
            seen.session_id = session.sessionId;
            const status = await session.rpc.gitHubAuth.getStatus();
            Object.assign(entry, { session: session.sessionId, login: status.login, plan: status.copilotPlan });
            entry.kind = status.authType ?? null;
            await ask(session, plan.prompts[0]);
            entry.answer = seen.answers.at(-1);
            await session.disconnect();
        }
        report.quota = (await client.rpc.account.getQuota({ gitHubToken: plan.logins[0].token })).quotaSnapshots;
    },

    // Let each user have a connection, a session in files of the user, and another connection that resumes it.
    async share() {
        const talk = async ([login, stores, sessionId], resume) => {
            const user = new CopilotClient({
                mode: "empty",
                connection: connection(),
                sessionFs: { initialCwd: "/workspace", sessionStatePath: "/session-state", conventions: "posix" },
            });
            await user.start();
            try {
                const { tools, onPermissionRequest } = sessionOptions();
                const options = {
                    tools,
                    onPermissionRequest,
                    model: login.model,
                    gitHubToken: login.token,
                    availableTools: ["custom:encrypt_string"],
                    createSessionFsProvider: (session) => memoryFiles((stores[session.sessionId] ??= {})),
                };
                const session = resume
                    ? await user.resumeSession(sessionId, options)
                    : await user.createSession({ ...options, sessionId });
                seen.session_id = session.sessionId;
                const message = await session.sendAndWait({ prompt: plan.prompts[0] });
                await session.disconnect();
                return message.data.content;
            } finally {
                await user.stop();
            }
        };
        const users = plan.logins.map((login, number) => [login, {}, `user-${number}`]);
        const answers = await Promise.all(users.map((user) => talk(user, false)));
        const again = await Promise.all(users.map((user) => talk(user, true)));
        const [[login, stores], [, , foreign]] = users;
        const stolen = await talk([login, stores, foreign], true).catch((error) => ({ error: String(error.message) }));
        const files = users.map(([, known]) =>
            Object.fromEntries(Object.entries(known).map(([name, content]) => [name, Object.keys(content).sort()])),
        );
        seen.report = { answers: [answers, again], files, stolen };
    },
};

const client = new CopilotClient({
    connection: connection(),
    workingDirectory: plan.working_directory,
    baseDirectory: plan.home,
    logLevel: "error",
});

async function run() {
    await client.start();
    await SCENARIOS[plan.scenario](client);
    seen.complaints.push(...(await client.stop()).map(String));
}

let timer;
const tooLate = new Promise((_, reject) => {
    timer = setTimeout(() => reject(new Error(`no end after ${TIME_LIMIT_MS} ms`)), TIME_LIMIT_MS);
});
try {
    await Promise.race([run(), tooLate]);
} catch (error) {
    seen.failure = String(error?.stack ?? error);
    await client.forceStop();
}
clearTimeout(timer);
process.stdout.write(JSON.stringify(seen) + "\n");
