// Permission requests and decisions in words: everything that an approval covers, and nothing else. Pure.

const DECISIONS: Record<string, { allowed: boolean; text: string }> = {
  "approved": { allowed: true, text: "a person, once" },
  "approved-for-session": { allowed: true, text: "a person, for this session" },
  "approved-for-location": { allowed: true, text: "a person, for this folder" },
  "approved-permanently": { allowed: true, text: "a person, everywhere" },
  "approved-read-only-for-session": { allowed: true, text: "a person, with reading in these folders" },
  "cancelled": { allowed: false, text: "nobody: the question was withdrawn" },
  "denied-by-rules": { allowed: false, text: "a rule" },
  "denied-by-content-exclusion-policy": { allowed: false, text: "the policy of the organization" },
  "denied-by-permission-request-hook": { allowed: false, text: "a hook" },
  "denied-interactively-by-user": { allowed: false, text: "a person" },
  "denied-no-approval-rule-and-could-not-request-from-user": { allowed: false, text: "nobody could be asked" },
};

/** The clients in which a person decides, by the names that they give; other clients may decide themselves. */
const PLACES: Record<string, string> = {
  "jumpseat-web": "the page", "vscode": "VS Code", "jumpseat-terminal": "the terminal", "jumpseat.nvim": "Neovim",
};

/** Return who has decided, and for how long, from the result of `permission.completed` and its `decidedBy`. */
export function decidedBy(result: any, by: { client?: string; token?: string } | null = null): { allowed: boolean; text: string } {
  const kind = String(result?.kind ?? "");
  const found = DECISIONS[kind] ?? { allowed: kind.startsWith("approved"), text: kind.replaceAll("-", " ") || "unknown" };
  return { allowed: found.allowed, text: found.text.replace(/^a person/, whoOf(by)) };
}

function whoOf(by: { client?: string; token?: string } | null): string {
  const place = by?.client ? PLACES[by.client] : undefined;
  if (!by?.client) return by?.token ?? "a person";
  if (place) return `${by.token ?? "a person"} in ${place}`;
  return by.token ? `${by.token} in the client ${by.client}` : `the client ${by.client}`;
}

/** Who has decided about a call without a question, by the `by` of `jumpseatDecision`. */
const UNASKED: Record<string, string> = {
  tool: "needs no approval", hook: "a hook", rule: "a rule", approval: "an earlier approval", mode: "the mode", sandbox: "stays in the sandbox",
  judge: "the judging model", operator: "the server allows it unasked", nobody: "nobody could be asked", turn: "the turn was cancelled",
};

/** Return why a call ran, or did not, without a question. Earlier versions did not record that. */
export function unaskedBy(unasked: { by: string; reason: string } | null): { by: string; rule: string } {
  if (unasked === null) return { by: "nobody was asked", rule: "" };
  return { by: UNASKED[unasked.by] ?? unasked.by, rule: unasked.reason };
}

const TITLES: Record<string, string> = {
  shell: "Run this command?",
  write: "Make this change?",
  read: "Read this?",
  url: "Open this address?",
  memory: "Remember this across sessions?",
  mcp: "Call this tool?",
  "custom-tool": "Call this tool?",
  hook: "Allow this call?",
};

export function questionTitle(request: any): string {
  const title = TITLES[request.kind] ?? `Allow this (${request.kind})?`;
  return request.kind === "shell" && request.requestSandboxBypass ? "Run this command outside of the sandbox?" : title;
}

/** Return what a request is about, in one line. */
export function describeRequest(request: any): string {
  switch (request.kind) {
    case "shell": return `run ${request.fullCommandText}`;
    case "write": return `change ${request.fileName}`;
    case "read": return `read ${request.path}`;
    case "url": return `open ${request.url}`;
    case "memory": return `${request.action ?? "store"} a memory: ${request.fact}`;
    case "mcp": return `call ${request.toolName} of ${request.serverName}`;
    case "custom-tool": return `call ${request.toolName}`;
    case "hook": return `call ${request.toolName}`;
    default: return `allow ${request.kind}`;
  }
}

/** Return what an approval beyond this call covers; empty if there is no such approval. */
export function approvalScope(request: any, folder: string): string {
  switch (request.kind) {
    case "shell": return request.canOfferSessionApproval ? shellScope(request) : "";
    case "write": return request.canOfferSessionApproval === false ? "" : pathScope("changes", request.resolvedPath ?? request.fileName, folder);
    case "read": return pathScope("reads", request.resolvedPath ?? request.path, folder);
    case "url": return `all of ${hostOf(request.url)}`;
    case "memory": return "all memories";
    case "mcp": return `${request.toolName} of ${request.serverName}`;
    case "custom-tool": return request.toolName;
    default: return "";
  }
}

function shellScope(request: any): string {
  if (request.requestSandboxBypass) return `this exact line, outside of the sandbox: ${request.fullCommandText}`;
  const commands: { identifier: string; readOnly: boolean }[] = request.commands ?? [];
  if (commands.filter((command) => !command.readOnly).length > 1) return `this exact line: ${request.fullCommandText}`;
  const also = request.alsoCovered ? [`also ${request.alsoCovered}`] : [];
  return [...new Set(commands.map((command) => command.identifier)), ...also].join(", ");
}

function pathScope(what: string, path: string, folder: string): string {
  const inside = path === folder || path.startsWith(`${folder.replace(/\/$/, "")}/`) || !path.startsWith("/");
  return `all ${what} in ${folder || "this folder"}${inside ? "" : `, and ${path}`}`;
}

function hostOf(url: string): string {
  try {
    return new URL(url).host;
  } catch {
    return url;
  }
}
