// The page in a webview: its messages go through the extension.

import { Connection, ShownChanges, type Host } from "../../../web/src/host.ts";
import { mount } from "../../../web/src/mount.tsx";
import { followPlace, go, parse, route } from "../../../web/src/route.ts";
import { Rpc } from "../../../web/src/rpc.ts";
import { Store } from "../../../web/src/store.ts";
import "../../../web/src/stylesheets.ts";
import type { FromPage, ToPage } from "../messages.ts";
// After the styles of the page, which it changes.
import "./theme.css";

declare function acquireVsCodeApi(): { postMessage(message: FromPage): void; getState(): unknown; setState(state: unknown): void };

const editor = acquireVsCodeApi();
const post = (message: FromPage): void => editor.postMessage(message);
const rpc = new Rpc();
const connection = new Connection();
const store = new Store(rpc);
const folders: string[] = [];
const shownChanges = new ShownChanges();
const host: Host = {
  folders,
  shownChanges,
  save: (name, content) => post({ kind: "save", name, content }),
  openFile: (path, line) => post({ kind: "open", path, line }),
};

followPlace(editor.getState(), (hash) => editor.setState(hash));
// The webview would take links inside the page for links to elements.
addEventListener("click", (event) => {
  const link = event.composedPath().find((one): one is HTMLAnchorElement => one instanceof HTMLAnchorElement);
  const target = link?.getAttribute("href");
  if (!target?.startsWith("#")) return;
  event.preventDefault();
  event.stopPropagation();
  if (target.startsWith("#/")) go(parse(target));
}, { capture: false });

/** What waits for the connection: a person may ask for a session before the server is there. */
const waiting: (() => void)[] = [];

function whenOpen(run: () => void): void {
  if (connection.link.value === "open") run();
  else waiting.push(run);
}

async function begin(): Promise<string | null> {
  const id = await store.create(folders[0] ?? "", "");
  if (id) go({ view: "session", id, tab: "transcript", at: null });
  return id;
}

const handlers: { [K in ToPage["kind"]]: (message: Extract<ToPage, { kind: K }>) => void } = {
  rpc: ({ text }) => rpc.receive(text),
  link: ({ link, problem, version, remedies }) => {
    if (link === "open") rpc.attach({ send: (text) => post({ kind: "rpc", text }), close: () => undefined });
    else rpc.detach();
    connection.problem.value = problem;
    connection.version.value = version;
    connection.remedies.value = remedies.map(({ label, command }) => ({ label, run: () => post({ kind: "command", command }) }));
    connection.link.value = link;
    if (link !== "open") return;
    void store.begin();
    for (const run of waiting.splice(0)) run();
  },
  folders: (message) => { folders.splice(0, folders.length, ...message.folders); },
  new: () => {
    if (folders.length > 1) go({ view: "new" });
    else whenOpen(() => void begin());
  },
  go: ({ hash }) => go(parse(hash)),
  shown: ({ requestId }) => shownChanges.add(requestId),
  attach: ({ name, wire }) => whenOpen(() => void attach(name, wire)),
};

async function attach(name: string, wire: Record<string, unknown>): Promise<void> {
  if (route.value.view !== "session" && !(await begin())) return;
  store.offered.value = [...store.offered.value, { name, wire }];
}

addEventListener("message", (event: MessageEvent<ToPage>) => {
  const handle = handlers[event.data?.kind] as ((message: ToPage) => void) | undefined;
  handle?.(event.data);
});
mount(store, connection, host, document.getElementById("app")!);
post({ kind: "ready" });
