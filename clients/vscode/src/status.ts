// The item in the status bar, and the badge of the view.

import * as vscode from "vscode";
import type { Jumpseat } from "./jumpseat.ts";

export class StatusItem {
  private readonly item = vscode.window.createStatusBarItem("jumpseat.status", vscode.StatusBarAlignment.Right, 90);

  constructor(private readonly jumpseat: Jumpseat) {
    this.item.name = "jumpseat";
    this.item.command = "jumpseat.open";
    this.update();
    this.item.show();
  }

  update(): void {
    const { server, activity, pages } = this.jumpseat;
    const asks = activity.questions.size;
    const works = activity.working.size;
    const [text, tooltip, colour] =
      server.status.kind === "failed" ? ["$(error) jumpseat", server.status.problem, "errorBackground"]
      : server.status.kind === "starting" ? ["$(sync~spin) jumpseat", "The server starts", null]
      : asks > 0 ? [`$(question) jumpseat asks you`, asks === 1 ? "A question waits for you" : `${asks} questions wait for you`, "warningBackground"]
      : works > 0 ? [`$(loading~spin) jumpseat`, works === 1 ? "1 agent is working" : `${works} agents are working`, null]
      : ["$(comment-discussion) jumpseat", server.status.kind === "ready" ? `Ready, version ${server.status.version}` : "Open the sessions", null];
    this.item.text = text!;
    this.item.tooltip = tooltip!;
    this.item.backgroundColor = colour ? new vscode.ThemeColor(`statusBarItem.${colour}`) : undefined;
    if (pages.view) pages.view.badge = asks > 0 ? { value: asks, tooltip: tooltip! } : undefined;
  }

  dispose(): void {
    this.item.dispose();
  }
}
