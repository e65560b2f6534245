// The tools that run in the editor. A tool is an entry of `editorTools`: the server offers it to the model, and asks
// the person before it runs unless it `runsUnasked`.

import * as vscode from "vscode";
import {
  editorsText, problemsText, runsText, selectionText, SEVERITIES, type OpenEditor, type Problem, type Selected,
} from "./format.ts";
import { Freshness, LONGEST_MS } from "./freshness.ts";
import type { Terminals } from "./terminals.ts";

export interface EditorTool {
  name: string;
  description: string;
  parameters: Record<string, unknown>;
  runsUnasked: boolean;
  /** Return what the model is told; a thrown error's message is told as the failure of the call. */
  run(args: Record<string, unknown>, folder: string): string | Promise<string>;
}

const NOTHING = { type: "object", properties: {} };
const MOST_RUNS = 20;

/** Follows the files that are open, so that a tool can wait until their diagnostics are those of the text on the disk. */
export class DiagnosticsWatch implements vscode.Disposable {
  private readonly freshness = new Freshness();
  private readonly subscriptions = [
    vscode.workspace.onDidOpenTextDocument((document) => this.freshness.changed(document.uri.fsPath, Date.now())),
    vscode.workspace.onDidChangeTextDocument(({ document, contentChanges }) => {
      if (contentChanges.length > 0) this.freshness.changed(document.uri.fsPath, Date.now());
    }),
    vscode.workspace.onDidCloseTextDocument((document) => this.freshness.forget(document.uri.fsPath)),
    vscode.languages.onDidChangeDiagnostics(({ uris }) => uris.forEach((uri) => this.freshness.reported(uri.fsPath, Date.now()))),
  ];

  /** Open files, so that language servers look at them, and wait until these have; for a limited time. */
  async settled(uris: readonly vscode.Uri[]): Promise<void> {
    const end = Date.now() + LONGEST_MS;
    const all = async (): Promise<boolean> => (await Promise.all(uris.map((uri) => this.isSettled(uri)))).every(Boolean);
    while (!(await all()) && Date.now() < end) await new Promise((resolve) => setTimeout(resolve, 50));
  }

  private async isSettled(uri: vscode.Uri): Promise<boolean> {
    try {
      const document = await vscode.workspace.openTextDocument(uri);
      // The editor notices changes on the disk a moment later, and keeps unsaved ones.
      const isSaved = document.isDirty || new TextDecoder().decode(await vscode.workspace.fs.readFile(uri)) === document.getText();
      return isSaved && this.freshness.isFresh(uri.fsPath, Date.now());
    } catch {
      // It does not exist, or is no text.
      return true;
    }
  }

  dispose(): void {
    this.subscriptions.forEach((one) => one.dispose());
  }
}
export function editorTools(terminals: Terminals, watch: DiagnosticsWatch): EditorTool[] {
  return [
    {
      name: "vscode_diagnostics",
      description: "List the errors and warnings that the user's editor shows, from language servers and linters, with their places. Default: of all files.",
      parameters: {
        type: "object",
        properties: {
          path: { type: "string", description: "Path of a file, absolute or relative to the working directory" },
          severity: { type: "string", enum: [...SEVERITIES], description: "Lowest severity to list" },
          wait_for: { type: "array", items: { type: "string" }, description: "Paths of files that were just changed: wait up to a second for their problems" },
        },
      },
      runsUnasked: true,
      run: async (args, folder) => {
        if (Array.isArray(args["wait_for"])) await watch.settled(args["wait_for"].map((path) => inFolder(String(path), folder)));
        return problemsText(diagnostics(args["path"], folder), folder, SEVERITIES.indexOf((args["severity"] ?? "hint") as "hint"));
      },
    },
    {
      name: "vscode_selection",
      description: "Return the text that the user has selected in the editor, with its file and lines.",
      parameters: NOTHING,
      runsUnasked: true,
      run: (_args, folder) => selectionText(selected(), folder),
    },
    {
      name: "vscode_open_files",
      description: "List the files that are open in the user's editor: which one the user is looking at, with the line of the cursor, and which have unsaved changes.",
      parameters: NOTHING,
      runsUnasked: true,
      run: (_args, folder) => editorsText(openEditors(), folder),
    },
    {
      name: "vscode_terminal",
      description: "Read the latest commands that were run in the terminals of the user's editor, with their output and exit code.",
      parameters: {
        type: "object",
        properties: { count: { type: "integer", minimum: 1, maximum: MOST_RUNS, description: "Number of commands; default 1" } },
      },
      // Terminals may show secrets.
      runsUnasked: false,
      run: (args, folder) => runsText(terminals.latest(typeof args["count"] === "number" ? args["count"] : 1), folder),
    },
  ];
}

/** Return the tools as `session.create` takes them. */
export function declarations(tools: readonly EditorTool[]): Record<string, unknown>[] {
  return tools.map(({ name, description, parameters, runsUnasked }) => ({ name, description, parameters, skipPermission: runsUnasked }));
}

function inFolder(path: string, folder: string): vscode.Uri {
  return path.startsWith("/") || /^[A-Za-z]:/.test(path) ? vscode.Uri.file(path) : vscode.Uri.joinPath(vscode.Uri.file(folder), path);
}

function diagnostics(path: unknown, folder: string): Problem[] {
  const wanted = typeof path === "string" ? inFolder(path, folder) : null;
  return vscode.languages.getDiagnostics()
    .filter(([uri]) => uri.scheme === "file" && (!wanted || uri.fsPath === wanted.fsPath))
    .flatMap(([uri, found]) => found.map((one) => ({
      path: uri.fsPath, line: one.range.start.line + 1, column: one.range.start.character + 1, severity: one.severity, message: one.message,
      source: one.source, code: one.code === undefined ? undefined : String(typeof one.code === "object" ? one.code.value : one.code),
    })));
}

export function selected(): Selected | null {
  const editor = vscode.window.activeTextEditor ?? vscode.window.visibleTextEditors.find((one) => one.document.uri.scheme === "file");
  if (!editor || editor.selection.isEmpty) return null;
  const { start, end } = editor.selection;
  return { path: editor.document.uri.fsPath, first: start.line + 1, last: end.line + 1, text: editor.document.getText(editor.selection) };
}

function openEditors(): OpenEditor[] {
  const visible = vscode.window.visibleTextEditors;
  const active = vscode.window.activeTextEditor ?? visible.find((one) => one.document.uri.scheme === "file");
  const paths = new Map<string, OpenEditor>();
  for (const tab of vscode.window.tabGroups.all.flatMap((group) => group.tabs)) {
    if (!(tab.input instanceof vscode.TabInputText) || tab.input.uri.scheme !== "file") continue;
    const path = tab.input.uri.fsPath;
    const editor = visible.find((one) => one.document.uri.fsPath === path);
    paths.set(path, { path, unsaved: tab.isDirty, line: editor ? editor.selection.active.line + 1 : null, active: editor !== undefined && editor === active });
  }
  return [...paths.values()];
}
