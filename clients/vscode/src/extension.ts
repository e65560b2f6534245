// The start of the extension: its parts, and how they are connected.

import * as vscode from "vscode";
import { commands } from "./commands.ts";
import { SCHEME } from "./edits.ts";
import { Jumpseat } from "./jumpseat.ts";
import { keepPanels, VIEW } from "./pages.ts";
import { StatusItem } from "./status.ts";
import { Terminals } from "./terminals.ts";
import { DiagnosticsWatch } from "./tools.ts";

let stop: () => Promise<void> = () => Promise.resolve();

export function activate(context: vscode.ExtensionContext): void {
  const log = vscode.window.createOutputChannel("jumpseat", "log");
  const terminals = new Terminals();
  const watch = new DiagnosticsWatch();
  const jumpseat = new Jumpseat(context, terminals, watch, log);
  const status = new StatusItem(jumpseat);
  jumpseat.onChange = () => status.update();
  stop = () => jumpseat.server.stop();
  context.subscriptions.push(
    log, status, watch, ...terminals.subscriptions, ...jumpseat.follow(), keepPanels(jumpseat.pages),
    vscode.window.registerWebviewViewProvider(VIEW, jumpseat.pages, { webviewOptions: { retainContextWhenHidden: true } }),
    vscode.workspace.registerTextDocumentContentProvider(SCHEME, jumpseat.edits),
    ...Object.entries(commands(jumpseat, context.secrets)).map(([name, run]) => vscode.commands.registerCommand(name, run)),
  );
}

/** End the server with the window. */
export function deactivate(): Promise<void> {
  return stop();
}
