// Generate src/generated/wire.ts from the JSON Schema of the protocol: the types of all events, and of the
// methods that the page calls, which are listed in METHODS.

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { fileURLToPath } from "node:url";

const HERE = dirname(fileURLToPath(import.meta.url));
const SCHEMA = join(HERE, "../../../protocol/schema/jumpseat.schema.json");
const OUTPUT = join(HERE, "../src/generated/wire.ts");

const METHODS = [
  "connect", "models.list", "session.list", "session.create", "session.resume", "session.send", "session.abort",
  "session.getMessages", "session.model.switchTo", "session.mode.set",
  "session.permissions.handlePendingPermissionRequest", "session.permissions.pendingRequests",
  "session.ui.handlePendingUserInput", "session.ui.handlePendingExitPlanMode",
  "session.ui.handlePendingElicitation", "session.ui.handlePendingAutoModeSwitch", "session.plan.readSqlTodos",
  "session.history.listRewindPoints", "session.history.previewRewind", "session.history.rewind",
  "session.metadata.contextInfo", "session.name.set", "session.usage.getMetrics", "session.detach",
  "session.queue.pendingItems", "session.workspaces.diff",
  "sessions.fork", "sessions.readPersistedEvents", "jumpseat.web.login", "jumpseat.web.logout", "jumpseat.web.describe", "jumpseat.web.modelCalls",
  "jumpseat.web.search", "jumpseat.web.openQuestions", "jumpseat.web.draft", "jumpseat.web.saveDraft",
  "jumpseat.web.usage", "session.delete", "ping", "jumpseat.setup.get", "jumpseat.setup.putKey", "jumpseat.setup.addServer",
  "jumpseat.setup.models", "jumpseat.setup.check", "jumpseat.setup.setModel",
  "jumpseat.changes.files", "jumpseat.changes.undoFiles", "jumpseat.runs.list", "jumpseat.permissions.list", "jumpseat.permissions.revoke",
];

const schema = JSON.parse(readFileSync(SCHEMA, "utf8"));
const definitions = schema.$defs;
const needed = new Map();

function typeOf(node) {
  if (node === true || node === undefined || Object.keys(node).length === 0) return "unknown";
  if (node.$ref) return named(node.$ref.replace("#/$defs/", ""));
  if ("const" in node) return JSON.stringify(node.const);
  if (node.enum) return node.enum.map((value) => JSON.stringify(value)).join(" | ");
  const union = node.anyOf ?? node.oneOf;
  if (union) return union.map(typeOf).map((type) => (type.includes("=>") ? `(${type})` : type)).join(" | ");
  if (node.allOf) return node.allOf.map(typeOf).join(" & ");
  if (Array.isArray(node.type)) return node.type.map((type) => typeOf({ ...node, type })).join(" | ");
  switch (node.type) {
    case "string": return "string";
    case "integer":
    case "number": return "number";
    case "boolean": return "boolean";
    case "null": return "null";
    case "array": return `(${typeOf(node.items)})[]`;
    case "object": return objectOf(node);
    default: return "unknown";
  }
}

function objectOf(node) {
  if (!node.properties) {
    return `Record<string, ${node.additionalProperties ? typeOf(node.additionalProperties) : "unknown"}>`;
  }
  const required = new Set(node.required ?? []);
  const members = Object.entries(node.properties).map(
    ([name, value]) => `  ${JSON.stringify(name)}${required.has(name) ? "" : "?"}: ${typeOf(value)};`,
  );
  return `{\n${members.join("\n")}\n}`;
}

function named(name) {
  const identifier = name.replace(/\W/g, "");
  if (!needed.has(identifier)) {
    needed.set(identifier, "");
    needed.set(identifier, typeOf(definitions[name]));
  }
  return identifier;
}

const events = Object.entries(schema.properties.events.properties).map(([kind, node]) => [kind, typeOf(node)]);
const requests = schema.properties.clientRequests.properties;
const methods = METHODS.map((method) => {
  if (!requests[method]) throw new Error(`the protocol has no method ${method}`);
  const { params, result } = requests[method].properties;
  return `  ${JSON.stringify(method)}: { params: ${typeOf(params)}; result: ${typeOf(result)} };`;
});

const text = [
  "// Generated from protocol/schema/jumpseat.schema.json by tools/wire_types.mjs.",
  "/* eslint-disable */",
  `export interface Methods {\n${methods.join("\n")}\n}`,
  `export interface Events {\n${events.map(([kind, type]) => `  ${JSON.stringify(kind)}: ${type};`).join("\n")}\n}`,
  ...[...needed].sort().map(([name, type]) => `export type ${name} = ${type};`),
].join("\n\n");

mkdirSync(dirname(OUTPUT), { recursive: true });
writeFileSync(OUTPUT, `${text}\n`);
