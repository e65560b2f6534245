// The pages of the window: the view in the side bar, and any number of editors with the same page.

import { randomBytes } from "node:crypto";
import * as vscode from "vscode";
import type { FromPage, ToPage } from "./messages.ts";
import type { Page } from "./relay.ts";

export const VIEW = "jumpseat.page";
const PANEL = "jumpseat.panel";

export interface PageHandler {
  opened(page: WebPage): void;
  received(page: WebPage, message: FromPage): void;
  closed(page: WebPage): void;
}

/** One page; messages wait until its script is there. */
export class WebPage implements Page {
  private waiting: ToPage[] | null = [];

  constructor(readonly webview: vscode.Webview, private readonly show: () => void, readonly isVisible: () => boolean) {}

  receive(text: string): void {
    this.post({ kind: "rpc", text });
  }

  post(message: ToPage): void {
    if (this.waiting) this.waiting.push(message);
    else void this.webview.postMessage(message);
  }

  ready(): void {
    const waiting = this.waiting ?? [];
    this.waiting = null;
    for (const message of waiting) this.post(message);
  }

  reveal(): void {
    this.show();
  }
}

export class Pages implements vscode.WebviewViewProvider, vscode.WebviewPanelSerializer {
  readonly open = new Set<WebPage>();
  view: vscode.WebviewView | null = null;

  constructor(private readonly extension: vscode.Uri, private readonly handler: PageHandler) {}

  resolveWebviewView(view: vscode.WebviewView): void {
    this.view = view;
    this.fill(view.webview, () => view.show(), () => view.visible, view.onDidDispose);
  }

  async deserializeWebviewPanel(panel: vscode.WebviewPanel): Promise<void> {
    this.adopt(panel);
  }

  /** Open the page in an editor of its own. */
  openPanel(): void {
    this.adopt(vscode.window.createWebviewPanel(PANEL, "jumpseat", vscode.ViewColumn.Active, { retainContextWhenHidden: true }));
  }

  private adopt(panel: vscode.WebviewPanel): void {
    panel.iconPath = vscode.Uri.joinPath(this.extension, "media/view.svg");
    this.fill(panel.webview, () => panel.reveal(), () => panel.visible, panel.onDidDispose);
  }

  /** Return the page that a person sees, or the view, which is opened. */
  async current(): Promise<WebPage | null> {
    const seen = [...this.open].find((page) => page.isVisible());
    if (seen) {
      seen.reveal();
      return seen;
    }
    await vscode.commands.executeCommand(`${VIEW}.focus`);
    return [...this.open].find((page) => page.isVisible()) ?? [...this.open][0] ?? null;
  }

  tell(message: ToPage): void {
    for (const page of this.open) page.post(message);
  }

  private fill(webview: vscode.Webview, show: () => void, isVisible: () => boolean, onDidDispose: vscode.Event<void>): void {
    webview.options = { enableScripts: true, enableForms: true, localResourceRoots: [vscode.Uri.joinPath(this.extension, "dist")] };
    const page = new WebPage(webview, show, isVisible);
    this.open.add(page);
    webview.onDidReceiveMessage((message: FromPage) => this.handler.received(page, message));
    onDidDispose(() => {
      this.open.delete(page);
      this.handler.closed(page);
    });
    webview.html = this.html(webview);
    this.handler.opened(page);
  }

  private html(webview: vscode.Webview): string {
    const file = (name: string): string => webview.asWebviewUri(vscode.Uri.joinPath(this.extension, "dist", name)).toString();
    const nonce = randomBytes(16).toString("base64");
    // Nothing of a session can run or load anything: scripts need the nonce, and nothing comes from elsewhere.
    const policy = [
      "default-src 'none'", `script-src 'nonce-${nonce}'`, `style-src 'nonce-${nonce}'`, "img-src data: blob:", "base-uri 'none'", "form-action 'none'",
      "require-trusted-types-for 'script'", "trusted-types dompurify 'allow-duplicates'",
    ].join("; ");
    return `<!doctype html>
<html lang="en">
  <head>
    <meta charset="utf-8">
    <meta http-equiv="Content-Security-Policy" content="${policy}">
    <meta name="viewport" content="width=device-width, initial-scale=1">
    <title>jumpseat</title>
    <link rel="stylesheet" nonce="${nonce}" href="${file("page.css")}">
    <script type="module" nonce="${nonce}" src="${file("page.js")}"></script>
  </head>
  <body><div id="app"></div></body>
</html>`;
  }
}

/** Let the pages in editors be there again after the window was loaded again. */
export function keepPanels(pages: Pages): vscode.Disposable {
  return vscode.window.registerWebviewPanelSerializer(PANEL, pages);
}
