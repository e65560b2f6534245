// The diff editors of the changes that agents ask to make: what is on the disk on the left, the proposal on the right.

import { randomUUID } from "node:crypto";
import { basename } from "node:path";
import * as vscode from "vscode";
import { proposedText } from "../../web/src/state/proposal.ts";
import { Settling } from "../../web/src/state/settling.ts";

export const SCHEME = "jumpseat-proposal";
const LARGEST_BYTES = 4 * 1024 * 1024;
const HINT_MS = 4000;

interface Proposal {
  sessionId: string;
  requestId: string;
  uri: vscode.Uri;
  text: string;
}

export type Decide = (sessionId: string, requestId: string, result: Record<string, unknown>) => Promise<void>;

export class Edits implements vscode.TextDocumentContentProvider {
  private readonly proposals = new Map<string, Proposal>();
  private readonly settling = new Settling();

  constructor(private readonly decide: Decide, private readonly onShown: (requestId: string) => void) {}

  /** Note which diff editors have come into sight: their buttons are where those of another change were. */
  followTabs(): vscode.Disposable {
    return vscode.window.tabGroups.onDidChangeTabs(({ opened, changed }) => {
      for (const tab of [...opened, ...changed]) {
        if (tab.isActive && tab.input instanceof vscode.TabInputTextDiff) this.settling.shown(tab.input.modified.toString(), Date.now());
      }
    });
  }

  provideTextDocumentContent(uri: vscode.Uri): string {
    return [...this.proposals.values()].find((one) => one.uri.toString() === uri.toString())?.text ?? "";
  }

  /** Open a diff editor for a permission request, if it is about a change that can be shown. */
  async show(sessionId: string, requestId: string, request: any): Promise<void> {
    const path: unknown = request.resolvedPath ?? request.fileName;
    if (request.kind !== "write" || typeof path !== "string" || this.proposals.has(requestId)) return;
    const file = vscode.Uri.file(path);
    let before: string | null = null;
    try {
      if ((await vscode.workspace.fs.stat(file)).size > LARGEST_BYTES) return;
      before = new TextDecoder("utf-8", { fatal: true }).decode(await vscode.workspace.fs.readFile(file));
    } catch {
      // A new file, or one that cannot be shown as text: the patch then does not fit.
    }
    const text = proposedText(request, before ?? "");
    if (text === null) return;
    const uri = vscode.Uri.from({ scheme: SCHEME, path: file.path, query: requestId });
    this.proposals.set(requestId, { sessionId, requestId, uri, text });
    const left = before === null ? vscode.Uri.from({ scheme: SCHEME, path: file.path, query: randomUUID() }) : file;
    const title = before === null ? `${basename(path)} (new, proposed)` : `${basename(path)} (proposed change)`;
    await vscode.commands.executeCommand("vscode.diff", left, uri, title, { preview: true, preserveFocus: true });
    this.settling.shown(uri.toString(), Date.now());
    this.onShown(requestId);
    // The question may have been answered while the editor was opened.
    if (!this.proposals.has(requestId)) await closeEditors(uri);
  }

  /** Answer the question of a diff editor; without a `uri`, of the one that is shown. */
  async answer(uri: vscode.Uri | undefined, approved: boolean): Promise<void> {
    const input = vscode.window.tabGroups.activeTabGroup.activeTab?.input;
    const wanted = uri ?? (input instanceof vscode.TabInputTextDiff ? input.modified : undefined);
    const proposal = [...this.proposals.values()].find((one) => one.uri.toString() === wanted?.toString());
    if (!proposal) return void vscode.window.showInformationMessage("This change has been decided already.");
    if (approved && !this.settling.isSettled(proposal.uri.toString(), Date.now())) {
      return void vscode.window.setStatusBarMessage("The change has only just appeared: nothing is allowed yet.", HINT_MS);
    }
    let feedback: string | undefined;
    if (!approved) {
      feedback = await vscode.window.showInputBox({ title: "What should the model do instead?", prompt: "Without an answer, its turn ends." });
      // Escape leaves the question open.
      if (feedback === undefined) return;
    }
    await this.decide(proposal.sessionId, proposal.requestId, approved ? { kind: "approve-once" } : { kind: "reject", ...(feedback?.trim() ? { feedback: feedback.trim() } : {}) });
  }

  /** Close the editor of a question that was answered, by whomever. */
  async close(requestId: string): Promise<void> {
    const proposal = this.proposals.get(requestId);
    if (!proposal) return;
    this.proposals.delete(requestId);
    this.settling.forget(proposal.uri.toString());
    await closeEditors(proposal.uri);
  }

  async closeAll(): Promise<void> {
    await Promise.all([...this.proposals.keys()].map((id) => this.close(id)));
  }
}

async function closeEditors(uri: vscode.Uri): Promise<void> {
  const tabs = vscode.window.tabGroups.all.flatMap((group) => group.tabs).filter((tab) => tab.input instanceof vscode.TabInputTextDiff && tab.input.modified.toString() === uri.toString());
  if (tabs.length > 0) await vscode.window.tabGroups.close(tabs, true);
}
