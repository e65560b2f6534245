// A typical client, written against the types generated from the schema. It is type-checked, not run.

import type { AssistantMessageEvent, PermissionRequestedData, Protocol, SessionEvent } from "./protocol";
import type { Answer, Params, Question, Result, Told } from "./wire";

interface Connection {
  ask<M extends keyof Protocol["clientRequests"]>(method: M, params: Params<M>): Promise<Result<M>>;
}

export async function converse(server: Connection): Promise<string> {
  const { sessionId, capabilities } = await server.ask("session.create", {
    streaming: true,
    tools: [{ name: "lookup", parameters: { type: "object" }, skipPermission: true }],
    systemMessage: null,
  });
  if (capabilities.ui.elicitation) throw new Error("nobody asked for it");
  await server.ask("session.mode.set", { sessionId, mode: "plan" });
  const { response } = await server.ask("session.sendAndWait", { sessionId, prompt: "Hello" });
  const { events } = await server.ask("session.getMessages", { sessionId });
  const answers = events.filter((event): event is AssistantMessageEvent => event.type === "assistant.message");
  const nothing: null = await server.ask("runtime.shutdown", {});
  return [response?.data.content, ...answers.map((one) => one.data.content), nothing].join();
}

// The type of an event determines the type of its data, and every type is handled.
export async function onEvent(server: Connection, told: Told<"session.event">): Promise<string | undefined> {
  const { sessionId, event } = told;
  switch (event.type) {
    case "assistant.message_delta":
      return event.data.deltaContent;
    case "tool.execution_complete":
      return event.data.success ? event.data.result?.content : event.data.error?.message;
    case "permission.requested": {
      const { requestId } = event.data;
      const kind = allowed(event.data) ? "approve-once" : "reject";
      const method = "session.permissions.handlePendingPermissionRequest";
      await server.ask(method, { sessionId, requestId, result: { kind } });
      return undefined;
    }
    case "session.idle":
      return event.data.mode satisfies "interactive" | "plan" | "autopilot";
    default:
      return event.ephemeral ? undefined : event.parentId ?? "the first";
  }
}

function allowed({ permissionRequest }: Pick<PermissionRequestedData, "permissionRequest">): boolean {
  switch (permissionRequest.kind) {
    case "shell":
      return permissionRequest.commands.every((command) => command.readOnly);
    case "write":
      return !permissionRequest.fileName.startsWith("/etc/");
    case "custom-tool":
      return permissionRequest.toolName === "lookup";
    default:
      return false;
  }
}

export function onQuestion({ choices }: Question<"userInput.request">): Answer<"userInput.request"> {
  return { answer: choices?.[0] ?? "as you like", wasFreeform: false };
}

// Sent to clients of protocol 2.
export function onToolCall({ toolName }: Question<"tool.call">): Answer<"tool.call"> {
  return { result: { textResultForLlm: `${toolName} says hello`, resultType: "success" } };
}

export function onPermissionRequest(asked: Question<"permission.request">): Answer<"permission.request"> {
  const kind = allowed(asked) ? "approved" : "denied-interactively-by-user";
  return { result: { kind } };
}

// Errors are detected: each of these lines must fail to compile.
export async function mistakes(server: Connection, event: SessionEvent): Promise<void> {
  // @ts-expect-error - there is no such method
  await server.ask("session.sned", {});
  // @ts-expect-error - the prompt is missing
  await server.ask("session.send", { sessionId: "s" });
  // @ts-expect-error - the field is called prompt
  await server.ask("session.send", { sessionId: "s", prompt: "Hello", promt: "Hello" });
  // @ts-expect-error - there is no such mode
  await server.ask("session.mode.set", { sessionId: "s", mode: "zen" });
  // @ts-expect-error - the type of the event is not known yet
  console.log(event.data.content);
  // @ts-expect-error - there is no such event
  if (event.type === "assistant.mesage") return;
}

declare const console: { log(text: unknown): void };
