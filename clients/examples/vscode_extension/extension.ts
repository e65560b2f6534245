/** An extension for VS Code that asks an agent about the selected lines. The agent sees the editor's problems. */

import { CopilotClient, defineTool, RuntimeConnection, type CopilotSession, type PermissionHandler } from "@github/copilot-sdk";
import * as vscode from "vscode";
import { z } from "zod";

const SEVERITIES = ["error", "warning", "information", "hint"];

/** One server for the window: it starts with the first question, and ends with the extension. */
let client: CopilotClient | undefined;
/** One session for each folder, so that the next question continues the conversation. */
const sessions = new Map<string, Promise<CopilotSession>>();

/** A tool of the editor: the model calls it like any other, and it runs here. */
const problems = defineTool("editor_problems", {
    description: "Return the problems that the editor shows in a file",
    parameters: z.object({ path: z.string().describe("Absolute path of the file") }),
    skipPermission: true,
    handler: ({ path }) => {
        const found = vscode.languages.getDiagnostics(vscode.Uri.file(path));
        return found.map((one) => `${one.range.start.line + 1}: ${SEVERITIES[one.severity]}: ${one.message}`).join("\n") || "none";
    },
});

/** Put every command, change and other access to the user. */
const ask: PermissionHandler = async (request) => {
    const detail = request.kind === "shell" ? request.fullCommandText : request.kind === "write" ? request.diff : JSON.stringify(request);
    const answer = await vscode.window.showWarningMessage(`May the agent do this? (${request.kind})`, { modal: true, detail }, "Allow", "Deny");
    return answer === "Allow" ? { kind: "approve-once" } : { kind: "reject" };
};

function sessionFor(folder: string): Promise<CopilotSession> {
    const path = vscode.workspace.getConfiguration("ask").get("path", "jumpseat");
    client ??= new CopilotClient({ connection: RuntimeConnection.forStdio({ path }) });
    const known = sessions.get(folder);
    if (known !== undefined) return known;
    const opened = client.createSession({ workingDirectory: folder, streaming: true, tools: [problems], onPermissionRequest: ask });
    sessions.set(folder, opened);
    // The next question tries again.
    opened.catch(() => sessions.delete(folder));
    return opened;
}

async function askAboutSelection(output: vscode.OutputChannel): Promise<void> {
    const editor = vscode.window.activeTextEditor;
    const question = await vscode.window.showInputBox({ prompt: "What do you want to know?" });
    if (editor === undefined || !question) return;
    const file = editor.document.uri;
    const folder = vscode.workspace.getWorkspaceFolder(file)?.uri.fsPath;
    if (folder === undefined) {
        void vscode.window.showErrorMessage("The file belongs to no folder of this window.");
        return;
    }
    const { start, end } = editor.selection;
    const lines = editor.document.getText(editor.selection);
    const prompt = `${question}\n\nLines ${start.line + 1} to ${end.line + 1} of ${file.fsPath}:\n\n${lines}`;
    output.show(true);
    output.appendLine(`> ${question}`);
    const progress = { location: vscode.ProgressLocation.Notification, title: "The agent works", cancellable: true };
    await vscode.window.withProgress(progress, async (_report, cancelled) => {
        const session = await sessionFor(folder);
        const stops = [
            session.on("assistant.message_delta", (event) => output.append(event.data.deltaContent)),
            session.on("tool.execution_start", (event) => output.appendLine(`[${event.data.toolName}]`)),
        ];
        const stopped = cancelled.onCancellationRequested(() => void session.abort());
        try {
            await session.sendAndWait({ prompt }, 3_600_000);
        } finally {
            stopped.dispose();
            for (const stop of stops) stop();
        }
    });
    output.appendLine("");
}

export function activate(context: vscode.ExtensionContext): void {
    const output = vscode.window.createOutputChannel("Agent");
    const command = vscode.commands.registerCommand("ask.selection", async () => {
        try {
            await askAboutSelection(output);
        } catch (error) {
            output.appendLine(String(error));
            void vscode.window.showErrorMessage(`The agent failed: ${String(error)}`);
        }
    });
    context.subscriptions.push(output, command);
}

export async function deactivate(): Promise<void> {
    await client?.stop();
}
