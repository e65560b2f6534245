// What the page needs of the program that shows it: a browser (main.tsx), or an editor, which brings its own.

import { signal } from "@preact/signals";
import { createContext } from "preact";

export type Link = "connecting" | "open" | "lost" | "locked" | "failed";

/** Something that a person can do about a failed connection. */
export interface Remedy {
  label: string;
  run: () => void;
}

/** The connection to the server, as the page shows it. */
export class Connection {
  readonly link = signal<Link>("connecting");
  readonly problem = signal("");
  /** Whether another program may be listening in place of the server: a token must not be typed then. */
  readonly stranger = signal(false);
  readonly version = signal("");
  readonly remedies = signal<readonly Remedy[]>([]);

  /** Forget the login of the browser at this address; absent where there is none. */
  logOut?(): void;

  /** Connect with a token that a person has typed; a `locked` connection asks for one. */
  unlock(_token: string): void {
    throw new Error("this connection needs no token");
  }
}

/** The ids of the permission requests whose changes a host shows. */
export class ShownChanges {
  readonly ids = signal<ReadonlySet<string>>(new Set());

  add(requestId: string): void {
    this.ids.value = new Set(this.ids.value).add(requestId);
  }
}

export interface Host {
  /** The folders that new sessions are offered first; with one, a session begins there without a question. */
  folders: readonly string[];
  save(name: string, content: string, type: string): void;
  /** Whether a person chooses the colours in the page; otherwise they are those of the host. */
  choosesTheme?: boolean;
  /** Show a file; a browser cannot. The path is absolute; lines are counted from 1. */
  openFile?(path: string, line: number | null): void;
  /** The permission requests whose changes the host itself shows, beside the page. */
  shownChanges?: ShownChanges;
}

export const browserHost: Host = {
  folders: [],
  choosesTheme: true,
  save(name, content, type) {
    const url = URL.createObjectURL(new Blob([content], { type }));
    const link = document.createElement("a");
    link.href = url;
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(url), 1000);
  },
};

export const HostContext = createContext<Host>(browserHost);

/** The time after which a busy page does what it has put off. */
const PUT_OFF_MS = 1000;

/** Call a function when the page has nothing else to do. */
export function whenIdle(run: () => void): void {
  if ("requestIdleCallback" in globalThis) requestIdleCallback(run, { timeout: PUT_OFF_MS });
  else setTimeout(run, PUT_OFF_MS / 5);
}

/** Call a function when the colours change: with the system, by choice, or with the theme of an editor. Returns how to stop that. */
export function onSchemeChange(change: () => void): () => void {
  const dark = matchMedia("(prefers-color-scheme: dark)");
  const theme = new MutationObserver(change);
  dark.addEventListener("change", change);
  theme.observe(document.body, { attributeFilter: ["class"] });
  theme.observe(document.documentElement, { attributeFilter: ["data-theme"] });
  return () => {
    dark.removeEventListener("change", change);
    theme.disconnect();
  };
}
