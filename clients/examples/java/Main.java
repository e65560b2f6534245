import static java.util.concurrent.CompletableFuture.completedFuture;

import com.github.copilot.sdk.CopilotClient;
import com.github.copilot.sdk.generated.AssistantMessageDeltaEvent;
import com.github.copilot.sdk.generated.ToolExecutionStartEvent;
import com.github.copilot.sdk.json.CopilotClientOptions;
import com.github.copilot.sdk.json.PermissionHandler;
import com.github.copilot.sdk.json.PermissionRequestResult;
import com.github.copilot.sdk.json.SessionConfig;
import com.github.copilot.sdk.json.ToolDefinition;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;

public class Main {
    record GetTemperature(String city) {}

    public static void main(String[] args) throws Exception {
        var getTemperature = ToolDefinition.create("get_temperature", "Returns the current temperature in a city",
            Map.of("type", "object", "required", List.of("city"),
                "properties", Map.of("city", Map.of("type", "string", "description", "Name of the city"))),
            invocation -> {
                var arguments = invocation.getArgumentsAs(GetTemperature.class);
                System.out.println("tool: get_temperature " + arguments.city());
                return completedFuture("18 degrees in " + arguments.city());
            });

        // In this version, the handler receives only the id of the call; an earlier event has the command or the tool.
        var calls = new ConcurrentHashMap<String, String>();
        PermissionHandler approve = (request, invocation) -> {
            System.out.println("permission: " + request.getKind() + " " + calls.get(request.getToolCallId()));
            return completedFuture(new PermissionRequestResult().setKind("approve-once"));
        };

        var program = System.getenv().getOrDefault("JUMPSEAT", "jumpseat");
        var config = new SessionConfig()
            .setStreaming(true)
            .setTools(List.of(getTemperature))
            .setOnPermissionRequest(approve);
        try (var client = new CopilotClient(new CopilotClientOptions().setCliPath(program));
                var session = client.createSession(config).get()) {
            session.on(ToolExecutionStartEvent.class, event -> {
                var call = event.getData();
                var command = call.arguments() instanceof Map<?, ?> given ? given.get("command") : null;
                calls.put(call.toolCallId(), command instanceof String text ? text : call.toolName());
            });
            session.on(AssistantMessageDeltaEvent.class, event -> {
                System.out.print(event.getData().deltaContent());
                System.out.flush();
            });
            session.sendAndWait("How warm is it in Berlin?").get();
            System.out.println();
        }
    }
}
