// Prompts that a person has begun to write. The server keeps them with their session, so that they outlive the page
// and the server. The browser keeps only what the server does not have yet, for this tab.

import { signal, type Signal } from "@preact/signals";
import type { Rpc } from "./rpc.ts";

/** Something that is sent with a prompt; `wire` is an attachment of `session.send`, or of the type PASTED. */
export interface Attached {
  name: string;
  wire: Record<string, unknown>;
}

/** A long text that was pasted, `{type, text}`: part of the prompt, but not of the box, which it would make slow. */
export const PASTED = "pasted";

/** A prompt that is on its way, or may have been lost with the connection: then the log tells whether it arrived. */
export interface Sending {
  text: string;
  files: readonly Attached[];
  /** The number of prompts with this text in the session before. */
  before: number;
  unsure: boolean;
}

export interface Draft {
  text: string;
  files: readonly Attached[];
  sending: Sending | null;
}

/** The draft of a session that does not exist yet; it is kept in the browser alone. */
export const NEW = "new";
const SAVE_MS = 400;
const EMPTY: Draft = { text: "", files: [], sending: null };

export class Drafts {
  private readonly known = new Map<string, Signal<Draft>>();
  private readonly timers = new Map<string, ReturnType<typeof setTimeout>>();
  /** The sessions that are open in the server, which keeps their drafts. */
  private readonly live = new Set<string>();
  private readonly filesChanged = new Set<string>();
  /** The drafts that the server does not have as they are here. */
  private readonly unsaved = new Set<string>();

  constructor(private readonly rpc: Rpc) {
    addEventListener("pagehide", () => this.flush());
    document.addEventListener("visibilitychange", () => { if (document.hidden) this.flush(); });
  }

  of(id: string): Signal<Draft> {
    let found = this.known.get(id);
    if (!found) {
      found = signal(recall(id) ?? EMPTY);
      this.known.set(id, found);
    }
    return found;
  }

  change(id: string, change: Partial<Pick<Draft, "text" | "files">>): void {
    const draft = this.of(id);
    draft.value = { ...draft.value, ...change };
    if (change.files) this.filesChanged.add(id);
    this.save(id, change.files ? 0 : SAVE_MS);
  }

  /** Take the text out of the box while it is sent; null if there is nothing to send, or another prompt is under way. */
  begin(id: string, before: (text: string) => number): Sending | null {
    const draft = this.of(id);
    const { text, files, sending } = draft.value;
    if (sending || (text.trim() === "" && files.length === 0)) return null;
    const next = { text, files, before: before(promptOf(text, files)), unsure: false };
    draft.value = { text: "", files: [], sending: next };
    // The server keeps the text until it has the prompt.
    this.unsaved.add(id);
    remember(id, draft.value);
    return next;
  }

  /** The prompt has arrived. */
  sent(id: string): void {
    const draft = this.of(id);
    const had = draft.value.sending;
    draft.value = { ...draft.value, sending: null };
    if (had?.files.length) this.filesChanged.add(id);
    this.save(id, 0);
  }

  /** The connection has ended: nobody knows yet whether the prompt has arrived. */
  doubt(id: string): void {
    const draft = this.of(id);
    const { sending } = draft.value;
    if (sending) draft.value = { ...draft.value, sending: { ...sending, unsure: true } };
  }

  /** The prompt was not sent: put it back before what was written since. */
  restore(id: string): void {
    const draft = this.of(id);
    const { text, files, sending } = draft.value;
    if (!sending) return;
    draft.value = { text: [sending.text, text].filter((one) => one !== "").join("\n"), files: [...sending.files, ...files], sending: null };
    this.save(id, 0);
  }

  /** A session was opened: show what the server has kept, unless something was written here. */
  async opened(id: string, isLive: boolean, lastPrompt: string): Promise<void> {
    if (!isLive) {
      this.live.delete(id);
      return;
    }
    this.live.add(id);
    const draft = this.of(id);
    if (!isEmpty(draft.value) || this.unsaved.has(id)) return this.save(id, 0);
    try {
      const stored = await this.rpc.call("jumpseat.web.draft", { sessionId: id });
      const files = stored.attachments.filter((one): one is any => typeof one["name"] === "string" && typeof one["wire"] === "object");
      // A tab that was closed at once may have left what it had sent.
      if (stored.text !== "" && stored.text === lastPrompt) return;
      if (isEmpty(draft.value) && (stored.text || files.length > 0)) draft.value = { ...EMPTY, text: stored.text, files };
    } catch {
      // A server of an earlier version keeps no drafts.
    }
  }

  forget(id: string): void {
    clearTimeout(this.timers.get(id));
    this.timers.delete(id);
    this.known.delete(id);
    this.live.delete(id);
    remember(id, EMPTY);
  }

  private save(id: string, delayMs: number): void {
    this.unsaved.add(id);
    remember(id, this.of(id).value);
    if (!this.live.has(id)) return;
    clearTimeout(this.timers.get(id));
    this.timers.set(id, setTimeout(() => void this.store(id), delayMs));
  }

  private async store(id: string): Promise<void> {
    clearTimeout(this.timers.get(id));
    this.timers.delete(id);
    const draft = this.of(id).value;
    // What is on its way is kept until it has arrived.
    if (draft.sending) return;
    const withFiles = this.filesChanged.delete(id);
    try {
      const { stored } = await this.rpc.call("jumpseat.web.saveDraft", {
        sessionId: id, text: draft.text, ...(withFiles ? { attachments: draft.files as any } : {}),
      });
      if (this.of(id).value !== draft) return;
      this.unsaved.delete(id);
      if (stored) remember(id, EMPTY);
    } catch {
      // Without a connection, the tab keeps it; it is stored when the session is opened again.
      if (withFiles) this.filesChanged.add(id);
    }
  }

  private flush(): void {
    for (const id of [...this.timers.keys()]) void this.store(id);
  }
}

/** Return the text of a prompt with the texts that were pasted. */
export function promptOf(text: string, files: readonly Attached[]): string {
  const pasted = files.filter((file) => file.wire["type"] === PASTED).map((file) => String(file.wire["text"]));
  return [text, ...pasted].filter((one) => one !== "").join("\n\n");
}

function isEmpty({ text, files, sending }: Draft): boolean {
  return text === "" && files.length === 0 && sending === null;
}

function keyOf(id: string): string {
  return `jumpseat draft ${id}`;
}

/** Keep a draft in this tab, also while it is loaded again. */
function remember(id: string, draft: Draft): void {
  try {
    if (isEmpty(draft)) sessionStorage.removeItem(keyOf(id));
    else sessionStorage.setItem(keyOf(id), JSON.stringify(draft));
  } catch {
    try {
      // Large attachments do not fit: the text does.
      sessionStorage.setItem(keyOf(id), JSON.stringify({ ...draft, files: [] }));
    } catch {
      // The browser keeps nothing for this page.
    }
  }
}

function recall(id: string): Draft | null {
  try {
    const kept = JSON.parse(sessionStorage.getItem(keyOf(id)) ?? "null");
    if (!kept || typeof kept.text !== "string") return null;
    const sending = kept.sending ? { ...kept.sending, unsure: true } : null;
    return { text: kept.text, files: Array.isArray(kept.files) ? kept.files : [], sending };
  } catch {
    return null;
  }
}
