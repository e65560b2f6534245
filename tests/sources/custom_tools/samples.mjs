// The TypeScript samples of the document "Custom Tools" as they are, for the official npm SDK, without its types.
// Each stands below a comment with its heading and its first line in the document. Run as a program, this module
// creates a session with the tools, sends one prompt and prints its events as JSON.
import { CopilotClient, defineTool, RuntimeConnection } from "@github/copilot-sdk";
import { z } from "zod";

// --- what the samples call: the application around them
const doSomething = async (arg1, arg2) => `${arg1}: ${arg2}`;
const fetchWeather = async (city, units) => ({ temp: 18, condition: `rain in ${units}` });
const db = {
    users: {
        search: async (term) => {
            if (term === "broken") throw new Error("the database is locked");
            return [{ name: "John Doe", email: "john@example.com" }];
        },
        findById: async () => ({ name: "John Doe", email: "john@example.com" }),
    },
};
const notifications = { send: async () => {} };

// --- Basic Tool Definition, line 32
const myTool = defineTool("tool_name", {
    description: "Clear description of what the tool does",
    parameters: {
        type: "object",
        properties: {
            arg1: { type: "string", description: "What this arg is for" },
            arg2: { type: "number", description: "Another parameter" }
        },
        required: ["arg1"]
    },
    handler: async (args) => {
        // Your implementation
        const result = await doSomething(args.arg1, args.arg2);
        return result;
    }
});

// --- Type-Safe Tools with Zod, line 57
const getWeather = defineTool("get_weather", {
    description: "Get current weather for a city",
    parameters: z.object({
        city: z.string().describe("The city name"),
        units: z.enum(["celsius", "fahrenheit"]).optional()
    }),
    handler: async (args) => {
        // args is fully typed: { city: string, units?: "celsius" | "fahrenheit" }
        const weather = await fetchWeather(args.city, args.units);
        return {
            city: args.city,
            temperature: weather.temp,
            condition: weather.condition
        };
    }
});

// --- Real-World Example: Database Query Tool, line 155
const queryUsers = defineTool("query_users", {
    description: "Search users in the database by name or email",
    parameters: z.object({
        searchTerm: z.string().describe("Name or email to search for"),
        limit: z.number().optional().default(10)
    }),
    handler: async (args) => {
        try {
            const users = await db.users.search(args.searchTerm, args.limit);

            return {
                textResultForLlm: `Found ${users.length} users matching "${args.searchTerm}": ${
                    users.map(u => `${u.name} (${u.email})`).join(', ')
                }`,
                toolTelemetry: {
                    resultCount: users.length,
                    searchTerm: args.searchTerm
                }
            };
        } catch (error) {
            return {
                textResultForLlm: `Error searching users: ${error.message}`,
                resultType: "failure",
                error: error.message
            };
        }
    }
});

// --- Multiple Tools Example, line 314
const tools = [
    defineTool("get_user", {
        description: "Get user details by ID",
        parameters: z.object({ userId: z.number() }),
        handler: async ({ userId }) => {
            const user = await db.users.findById(userId);
            return `User: ${user.name}, Email: ${user.email}`;
        }
    }),

    defineTool("send_notification", {
        description: "Send a notification to a user",
        parameters: z.object({
            userId: z.number(),
            message: z.string()
        }),
        handler: async ({ userId, message }) => {
            await notifications.send(userId, message);
            return "Notification sent successfully";
        }
    }),

    // --- Implementation in Caco, line 435
    defineTool("get_time", {
        description: "Get the current date and time",
        handler: () => new Date().toISOString()
    })
];

const events = [];
const client = new CopilotClient({ connection: RuntimeConnection.forStdio({ path: process.env.JUMPSEAT }) });
const session = await client.createSession({
    tools: [myTool, getWeather, queryUsers, ...tools],
    onPermissionRequest: () => ({ kind: "approve-once" }),
});
session.on((event) => events.push(event));
await session.sendAndWait({ prompt: "Call them all." });
console.log(JSON.stringify(events));
await session.disconnect();
await client.stop();
