import { CopilotClient, defineTool, RuntimeConnection, type PermissionHandler } from "@github/copilot-sdk";
import { z } from "zod";

const getTemperature = defineTool("get_temperature", {
    description: "Returns the current temperature in a city",
    parameters: z.object({ city: z.string().describe("Name of the city") }),
    handler: ({ city }) => {
        console.log("tool: get_temperature", city);
        return `18 degrees in ${city}`;
    },
});

const approve: PermissionHandler = (request) => {
    switch (request.kind) {
        case "shell":
            console.log("permission: shell", request.fullCommandText);
            break;
        case "custom-tool":
            console.log("permission: custom-tool", request.toolName);
            break;
    }
    return { kind: "approve-once" };
};

const path = process.env.JUMPSEAT ?? "jumpseat";
const client = new CopilotClient({ connection: RuntimeConnection.forStdio({ path }) });
const session = await client.createSession({
    streaming: true,
    tools: [getTemperature],
    onPermissionRequest: approve,
});
session.on("assistant.message_delta", (event) => process.stdout.write(event.data.deltaContent));
await session.sendAndWait({ prompt: "How warm is it in Berlin?" });
console.log();
await session.disconnect();
await client.stop();
