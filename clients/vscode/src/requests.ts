// What the extension adds to the requests of its pages, and which of them it refuses in Restricted Mode. Pure.

export interface Surroundings {
  trusted: boolean;
  folder: string | null;
  model: string;
  tools: readonly Record<string, unknown>[];
}

/** The requests that look at sessions and change nothing. */
const READING = new Set([
  "session.list", "session.getMessages", "sessions.readPersistedEvents", "jumpseat.web.describe", "jumpseat.web.modelCalls",
  "jumpseat.web.search", "models.list", "jumpseat.permissions.list",
]);

export const CLIENT_NAME = "vscode";
export const RESTRICTED = "This folder is in Restricted Mode: trust it to let an agent work here.";

/** Return the parameters with which a request of a page goes to the server. Throws an `Error` that says why it does not. */
export function adapt(method: string, params: Record<string, unknown>, around: Surroundings): Record<string, unknown> {
  if (!around.trusted && !READING.has(method)) throw new Error(RESTRICTED);
  if (method !== "session.create" && method !== "session.resume") return params;
  const adapted: Record<string, unknown> = { ...params, clientName: CLIENT_NAME };
  if (around.tools.length > 0) adapted["tools"] = around.tools;
  if (method === "session.create") {
    if (around.folder && !params["workingDirectory"]) adapted["workingDirectory"] = around.folder;
    if (around.model && !params["model"]) adapted["model"] = around.model;
  }
  return adapted;
}
