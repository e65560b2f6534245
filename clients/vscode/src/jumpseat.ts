// The client of the server in this window: its process, its pages, and what it serves the sessions.

import * as vscode from "vscode";
import { after, IDLE, type Activity } from "./activity.ts";
import { Edits } from "./edits.ts";
import type { FromPage, ToPage } from "./messages.ts";
import { Pages, type PageHandler, type WebPage } from "./pages.ts";
import { Relay } from "./relay.ts";
import { adapt } from "./requests.ts";
import { messageOf, Server, type Status } from "./server.ts";
import { folders, INSTALL, ownServer, serverCommand, setting } from "./settings.ts";
import { declarations, editorTools, type DiagnosticsWatch, type EditorTool } from "./tools.ts";
import type { Terminals } from "./terminals.ts";

/** The commands that a page may run: the remedies of a failed connection. */
const REMEDIES = new Map([["jumpseat.restart", "Try again"], ["jumpseat.openSettings", "Open the settings"], ["jumpseat.showLog", "Show the log"], ["workbench.trust.manage", "Manage trust"], ["jumpseat.useFolderServer", "Use the server of this folder"]]);
const PATH_SETTINGS = ["path", "arguments", "environment"];
/** The settings may change several times while their file is written. */
const SETTLE_MS = 300;

export class Jumpseat implements PageHandler {
  readonly server: Server;
  readonly pages: Pages;
  readonly edits: Edits;
  activity: Activity = IDLE;
  onChange: () => void = () => undefined;
  private readonly relay: Relay;
  private readonly tools: readonly EditorTool[];
  private readonly sessionFolders = new Map<string, string>();
  private settling: NodeJS.Timeout | undefined;

  constructor(private readonly context: vscode.ExtensionContext, terminals: Terminals, watch: DiagnosticsWatch, readonly log: vscode.OutputChannel) {
    this.tools = editorTools(terminals, watch);
    this.server = new Server(() => serverCommand(context.secrets), (text) => log.append(text));
    this.server.onStatus = (status) => this.changed(status);
    this.server.rpc.onNotification = (method, params) => this.notified(method, params);
    this.relay = new Relay(this.server.rpc, (method, params) => adapt(method, params, {
      trusted: vscode.workspace.isTrusted, folder: folders()[0] ?? null, model: setting<string>("model"),
      tools: setting<boolean>("editorTools") ? declarations(this.tools) : [],
    }));
    this.pages = new Pages(context.extensionUri, this);
    this.edits = new Edits(
      (sessionId, requestId, result) => this.decide(sessionId, requestId, result),
      (requestId) => this.pages.tell({ kind: "shown", requestId }),
    );
  }

  // --- the pages call these -------------------------------------------------------------------------------------

  opened(page: WebPage): void {
    this.relay.add(page);
    page.post({ kind: "folders", folders: folders() });
    page.post(this.link(this.server.status));
    void this.server.start();
  }

  closed(page: WebPage): void {
    this.relay.remove(page);
  }

  received(page: WebPage, message: FromPage): void {
    switch (message.kind) {
      case "ready": return page.ready();
      case "rpc": return void this.relay.receive(page, message.text);
      case "save": return void this.save(message.name, message.content);
      case "open": return void this.openFile(message.path, message.line);
      case "command":
        if (REMEDIES.has(message.command)) void vscode.commands.executeCommand(message.command);
    }
  }

  private async save(name: string, content: string): Promise<void> {
    const folder = vscode.workspace.workspaceFolders?.[0]?.uri;
    const target = await vscode.window.showSaveDialog(folder ? { defaultUri: vscode.Uri.joinPath(folder, name) } : {});
    if (target) await vscode.workspace.fs.writeFile(target, new TextEncoder().encode(content));
  }

  private async openFile(path: string, line: number | null): Promise<void> {
    try {
      const at = new vscode.Position(Math.max(0, (line ?? 1) - 1), 0);
      await vscode.window.showTextDocument(vscode.Uri.file(path), { preview: true, selection: new vscode.Range(at, at) });
    } catch (error) {
      void vscode.window.showWarningMessage(messageOf(error));
    }
  }

  // --- the server -----------------------------------------------------------------------------------------------

  private link(status: Status): ToPage {
    const remedies = (...commands: string[]): { label: string; command: string }[] => commands.map((command) => ({ label: REMEDIES.get(command)!, command }));
    switch (status.kind) {
      case "stopped":
      case "starting": return { kind: "link", link: "connecting", problem: "", version: "", remedies: [] };
      case "ready": return { kind: "link", link: "open", problem: "", version: status.version, remedies: [] };
      case "failed": return {
        kind: "link", link: "failed", version: "", remedies: status.missing ? remedies(...(ownServer() ? ["jumpseat.useFolderServer"] : []), "jumpseat.openSettings", "jumpseat.restart") : remedies("jumpseat.restart", "jumpseat.showLog", "jumpseat.openSettings"),
        problem: status.missing ? `The server could not be started: ${status.problem}: ${INSTALL}.` : `The server could not be started: ${status.problem}.`,
      };
    }
  }

  private changed(status: Status): void {
    this.pages.tell(this.link(status));
    void vscode.commands.executeCommand("setContext", "jumpseat.ready", status.kind === "ready");
    if (status.kind !== "ready") {
      this.activity = IDLE;
      void this.edits.closeAll();
    } else void this.lookForModels();
    this.onChange();
  }

  private async lookForModels(): Promise<void> {
    try {
      const { models } = await this.server.rpc.call("models.list", {});
      void vscode.commands.executeCommand("setContext", "jumpseat.hasModels", models.length > 0);
    } catch {
      // The pages show the problem.
    }
  }

  private notified(method: string, params: any): void {
    this.relay.notify(method, params);
    if (method !== "session.event") return;
    const { sessionId, event } = params as { sessionId: string; event: { type: string; agentId?: string; data?: any } };
    const activity = after(this.activity, sessionId, event);
    if (activity !== this.activity) {
      this.activity = activity;
      this.onChange();
    }
    switch (event.type) {
      case "session.start":
      case "session.resume":
        if (event.data?.context?.cwd) this.sessionFolders.set(sessionId, event.data.context.cwd);
        break;
      case "user.message":
        void vscode.commands.executeCommand("setContext", "jumpseat.prompted", true);
        break;
      case "external_tool.requested":
        void this.run(event.data);
        break;
      case "permission.requested":
        if (setting<boolean>("showDiffs") && !event.data.resolvedByHook) void this.edits.show(sessionId, event.data.requestId, event.data.permissionRequest);
        break;
      case "permission.completed":
        void this.edits.close(event.data.requestId);
        if (String(event.data.result?.kind).startsWith("approved")) void vscode.commands.executeCommand("setContext", "jumpseat.approved", true);
    }
  }

  /** Run a tool of the editor for a session. Calls of tools of other clients are theirs. */
  private async run(call: { sessionId: string; requestId: string; toolName: string; arguments?: Record<string, unknown>; workingDirectory?: string }): Promise<void> {
    const tool = this.tools.find((one) => one.name === call.toolName);
    if (!tool) return;
    const folder = call.workingDirectory ?? this.sessionFolders.get(call.sessionId) ?? folders()[0] ?? "";
    let answer: { result: unknown };
    try {
      answer = { result: await tool.run(call.arguments ?? {}, folder) };
    } catch (error) {
      answer = { result: { textResultForLlm: messageOf(error), resultType: "failure" } };
    }
    await this.ask("session.tools.handlePendingToolCall", { sessionId: call.sessionId, requestId: call.requestId, ...answer });
  }

  private async decide(sessionId: string, requestId: string, result: Record<string, unknown>): Promise<void> {
    const answer = await this.ask("session.permissions.handlePendingPermissionRequest", { sessionId, requestId, result });
    if (answer && answer["success"] === false) void vscode.window.showInformationMessage("Somebody else has answered already.");
  }

  async stopAll(): Promise<void> {
    await Promise.all([...this.activity.working].map((sessionId) => this.ask("session.abort", { sessionId })));
  }

  /** Call a method; a failure is shown, and `null` returned. */
  async ask(method: string, params: Record<string, unknown>): Promise<Record<string, any> | null> {
    try {
      return await this.server.rpc.call(method as never, params as never) as Record<string, any>;
    } catch (error) {
      void vscode.window.showErrorMessage(`jumpseat: ${messageOf(error)}`);
      return null;
    }
  }

  // --- the editor -----------------------------------------------------------------------------------------------

  /** Follow changes of the settings, of the trust and of the folders. */
  follow(): vscode.Disposable[] {
    const restart = (): void => {
      if (this.pages.open.size > 0) void this.server.restart();
    };
    return [
      vscode.workspace.onDidGrantWorkspaceTrust(restart),
      vscode.workspace.onDidChangeWorkspaceFolders(() => this.pages.tell({ kind: "folders", folders: folders() })),
      vscode.workspace.onDidChangeConfiguration((change) => {
        if (PATH_SETTINGS.some((name) => change.affectsConfiguration(`jumpseat.${name}`))) this.startAgainSoon();
      }),
      this.context.secrets.onDidChange(() => this.startAgainSoon()),
      this.edits.followTabs(),
      { dispose: () => clearTimeout(this.settling) },
    ];
  }

  private startAgainSoon(): void {
    clearTimeout(this.settling);
    this.settling = setTimeout(() => void this.offerRestart(), SETTLE_MS);
  }

  /** Start the server again after a change of how it is started; ask first if that would end work. */
  private async offerRestart(): Promise<void> {
    if (this.server.status.kind === "stopped") return;
    if (this.activity.working.size > 0) {
      const answer = await vscode.window.showWarningMessage("Start the server again, with the changed settings? Agents are at work.", "Restart");
      if (answer !== "Restart") return;
    }
    await this.server.restart();
  }
}
