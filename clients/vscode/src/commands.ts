// The commands of the extension. Each is an entry of the table.

import { execFile } from "node:child_process";
import { basename } from "node:path";
import { promisify } from "node:util";
import * as vscode from "vscode";
import type { Jumpseat } from "./jumpseat.ts";
import { messageOf } from "./server.ts";
import { INSTALL, keys, serverCommand, setKey, useOwnServer } from "./settings.ts";
import { selected } from "./tools.ts";

/** The providers whose keys are asked for by name; others are named by their variable. */
const KEYS = [
  ["Anthropic", "ANTHROPIC_API_KEY"], ["OpenAI, or an endpoint like it", "OPENAI_API_KEY"], ["Google Gemini", "GEMINI_API_KEY"], ["Mistral", "MISTRAL_API_KEY"],
  ["DeepSeek", "DEEPSEEK_API_KEY"], ["OpenRouter", "OPENROUTER_API_KEY"], ["Moonshot (Kimi)", "MOONSHOT_API_KEY"], ["GitHub Copilot", "COPILOT_GITHUB_TOKEN"],
] as const;
const CHECK_MS = 20_000;

export function commands(jumpseat: Jumpseat, secrets: vscode.SecretStorage): Record<string, (...args: any[]) => unknown> {
  return {
    "jumpseat.open": () => jumpseat.pages.current(),
    "jumpseat.openInEditor": () => jumpseat.pages.openPanel(),
    "jumpseat.newSession": async () => (await jumpseat.pages.current())?.post({ kind: "new" }),
    "jumpseat.stop": () => jumpseat.stopAll(),
    "jumpseat.addSelection": () => addSelection(jumpseat),
    "jumpseat.addFile": (uri?: vscode.Uri) => uri && addFile(jumpseat, uri),
    "jumpseat.chooseModel": () => chooseModel(jumpseat),
    "jumpseat.setKey": () => askForKey(secrets),
    "jumpseat.check": () => check(secrets),
    "jumpseat.useFolderServer": () => useOwnServer(),
    "jumpseat.restart": () => jumpseat.server.restart(),
    "jumpseat.showLog": () => jumpseat.log.show(true),
    "jumpseat.openSettings": () => vscode.commands.executeCommand("workbench.action.openSettings", "@ext:jumpseat.jumpseat"),
    "jumpseat.approveEdit": (uri?: vscode.Uri) => jumpseat.edits.answer(uri, true),
    "jumpseat.denyEdit": (uri?: vscode.Uri) => jumpseat.edits.answer(uri, false),
  };
}

async function addSelection(jumpseat: Jumpseat): Promise<void> {
  const editor = vscode.window.activeTextEditor;
  const found = selected();
  if (!editor || !found) return;
  const { start, end } = editor.selection;
  const name = `${basename(found.path)}:${found.first}-${found.last}`;
  (await jumpseat.pages.current())?.post({
    kind: "attach", name, wire: { type: "selection", filePath: found.path, displayName: name, text: found.text, selection: { start: { line: start.line, character: start.character }, end: { line: end.line, character: end.character } } },
  });
}

async function addFile(jumpseat: Jumpseat, uri: vscode.Uri): Promise<void> {
  const isFolder = ((await vscode.workspace.fs.stat(uri)).type & vscode.FileType.Directory) !== 0;
  const name = basename(uri.fsPath);
  (await jumpseat.pages.current())?.post({ kind: "attach", name, wire: { type: isFolder ? "directory" : "file", path: uri.fsPath, displayName: name } });
}

async function chooseModel(jumpseat: Jumpseat): Promise<void> {
  await jumpseat.server.start();
  const answer = await jumpseat.ask("models.list", {});
  if (!answer) return;
  const models = answer["models"] as { id: string; name?: string }[];
  const items = [{ label: "The default of the server", id: "" }, ...models.map((model) => ({ label: model.name ?? model.id, description: model.name && model.name !== model.id ? model.id : "", id: model.id }))];
  const chosen = await vscode.window.showQuickPick(items, { title: "Model of new sessions", placeHolder: models.length === 0 ? "No provider is configured: set the key of one first" : "Type to search", matchOnDescription: true });
  if (chosen) await vscode.workspace.getConfiguration("jumpseat").update("model", chosen.id || undefined, vscode.ConfigurationTarget.Global);
}

async function askForKey(secrets: vscode.SecretStorage): Promise<void> {
  const known = await keys(secrets);
  const named = KEYS.map(([label, variable]) => ({ label, description: variable, detail: known[variable] ? "A key is kept" : "", variable: variable as string }));
  const others = Object.keys(known).filter((name) => !named.some((one) => one.variable === name)).map((name) => ({ label: name, description: "", detail: "A key is kept", variable: name }));
  const chosen = await vscode.window.showQuickPick([...named, ...others, { label: "Another environment variable…", description: "", detail: "", variable: "" }], { title: "Whose key?" });
  if (!chosen) return;
  const variable = chosen.variable || (await vscode.window.showInputBox({ title: "Environment variable", validateInput: (value) => (/^[A-Za-z_][A-Za-z0-9_]*$/.test(value) ? null : "expected letters, digits and _") }));
  if (!variable) return;
  const value = await vscode.window.showInputBox({ title: `Key in ${variable}`, password: true, prompt: "Kept in the secret storage of the editor. Empty: remove it." });
  if (value !== undefined) await setKey(secrets, variable, value.trim());
}

async function check(secrets: vscode.SecretStorage): Promise<void> {
  const command = await serverCommand(secrets);
  try {
    const { stdout } = await promisify(execFile)(command.path, ["--version"], { env: command.environment, timeout: CHECK_MS });
    void vscode.window.showInformationMessage(`The server is there: ${stdout.trim()}`);
  } catch (error) {
    const missing = (error as NodeJS.ErrnoException).code === "ENOENT";
    const answer = await vscode.window.showErrorMessage(missing ? `There is no command ${command.path}: ${INSTALL}.` : messageOf(error), "Open the settings");
    if (answer) await vscode.commands.executeCommand("jumpseat.openSettings");
  }
}
