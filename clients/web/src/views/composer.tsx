// The prompt box: text, attachments, steering, stopping and the model.

import { useEffect, useLayoutEffect, useRef } from "preact/hooks";
import { PASTED, type Sending } from "../drafts.ts";
import { count } from "../state/format.ts";
import type { Attached, OpenSession, Store } from "../store.ts";
import { Icon } from "./common.tsx";

const LARGEST_BYTES = 8 * 1024 * 1024;
const HIGHEST_PX = 260;
/** A longer text that is pasted is beside the box, which would be slow with it. */
const LONG_PASTE = 20_000;
const MOST_PASTED_LINES = 400;
/** The length from which on a text fills the box: measuring it would take longer than typing. */
const FILLING = 5000;

export function Composer({ store, session }: { store: Store; session: OpenSession }) {
  const { state, id } = session;
  const { text, files, sending } = store.drafts.of(id).value;
  const box = useRef<HTMLTextAreaElement>(null);
  const canSend = (text.trim() !== "" || files.length > 0) && !sending;
  const send = (steer: boolean): void => void store.send(id, steer);
  useDrop(store, id);

  useEffect(() => {
    const offered = store.offered.value;
    if (offered.length === 0) return;
    store.offered.value = [];
    store.drafts.change(id, { files: [...store.drafts.of(id).value.files, ...offered] });
    box.current?.focus();
  }, [store.offered.value]);

  return (
    <form class="composer" onSubmit={(event) => { event.preventDefault(); send(state.working); }}>
      {session.queued.length > 0 && <p class="faint" dir="auto">Waiting: {session.queued.map((one) => `“${one.slice(0, 60)}”`).join(", ")}</p>}
      {sending && <Unsent sending={sending} />}
      <Files store={store} id={id} />
      <label class="hidden" for="prompt">Prompt</label>
      <PromptBox
        store={store} id={id} box={box} placeholder={state.working ? "Steer the work in progress…" : "Ask for something…"}
        send={(event) => send(state.working && !(event.ctrlKey || event.metaKey))}
      />
      <div class="composer-row">
        <AttachButton store={store} id={id} />
        <ModelChoice store={store} session={session} />
        <span class="grow" />
        {state.working && canSend && <button type="button" onClick={() => send(false)} title="Ctrl+Enter">Queue</button>}
        {state.working && <button type="button" class="danger" onClick={() => void store.stop(id)}><Icon name="stop" size={14} /> Stop</button>}
        {(!state.working || canSend) && <button type="submit" class="primary" disabled={!canSend}>{sending ? "Sending…" : state.working ? "Steer" : "Send"} <Icon name="send" size={14} /></button>}
      </div>
    </form>
  );
}

/** A prompt that the server has not confirmed yet. */
function Unsent({ sending }: { sending: Sending }) {
  return (
    <p class="unsent" role="status">
      <span class="badge">{sending.unsure ? "not confirmed: the connection was lost" : "sending…"}</span>{" "}
      <span dir="auto">{sending.text.slice(0, 200)}{sending.files.length > 0 ? ` (${sending.files.map((file) => file.name).join(", ")})` : ""}</span>
    </p>
  );
}

interface BoxProps {
  store: Store;
  id: string;
  box: { current: HTMLTextAreaElement | null };
  placeholder: string;
  name?: string;
  rows?: number;
  send: (event: KeyboardEvent) => void;
}

/** The box of a draft. Enter sends it; files are pasted into it. */
export function PromptBox({ store, id, box, placeholder, name = "prompt", rows = 1, send }: BoxProps) {
  const { text } = store.drafts.of(id).value;
  useLayoutEffect(() => {
    const element = box.current;
    if (!element) return;
    if (text.length > FILLING) {
      element.style.height = `${HIGHEST_PX}px`;
      return;
    }
    element.style.height = "auto";
    if (text) element.style.height = `${Math.min(element.scrollHeight, HIGHEST_PX)}px`;
  }, [text]);
  return (
    <textarea
      id={name} ref={box} rows={rows} value={text} placeholder={placeholder} dir="auto"
      onInput={(event) => store.drafts.change(id, { text: event.currentTarget.value })}
      onPaste={(event) => {
        const pasted = [...(event.clipboardData?.files ?? [])];
        const long = event.clipboardData?.getData("text/plain") ?? "";
        if (pasted.length > 0) void addFiles(store, id, pasted);
        else if (long.length > LONG_PASTE || lineCount(long) > MOST_PASTED_LINES) addPasted(store, id, long);
        else return;
        event.preventDefault();
      }}
      onKeyDown={(event) => {
        if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
        event.preventDefault();
        if (!event.repeat) send(event);
      }}
    />
  );
}

/** The attachments of a draft, pictures as such. */
export function Files({ store, id }: { store: Store; id: string }) {
  const { files } = store.drafts.of(id).value;
  if (files.length === 0) return null;
  return (
    <ul class="attachments">
      {files.map((file, at) => (
        <li key={at} class="badge">{pictureOf(file) && <img class="thumbnail" src={pictureOf(file)} alt="" />}{file.name}
          <button type="button" class="quiet" aria-label={`Remove ${file.name}`} onClick={() => store.drafts.change(id, { files: files.filter((_, other) => other !== at) })}><Icon name="cross" size={12} /></button>
        </li>
      ))}
    </ul>
  );
}

export function AttachButton({ store, id }: { store: Store; id: string }) {
  const picker = useRef<HTMLInputElement>(null);
  return (
    <>
      <button type="button" class="quiet" aria-label="Attach files" title="Attach files" onClick={() => picker.current?.click()}><Icon name="clip" /></button>
      <input ref={picker} type="file" multiple hidden onChange={(event) => { void addFiles(store, id, [...(event.currentTarget.files ?? [])]); event.currentTarget.value = ""; }} />
    </>
  );
}

/** Take files that are dropped anywhere on the page: otherwise the browser would leave the page for them. */
export function useDrop(store: Store, id: string): void {
  useEffect(() => {
    const over = (event: DragEvent): void => {
      if (event.dataTransfer?.types.includes("Files")) event.preventDefault();
    };
    const drop = (event: DragEvent): void => {
      const dropped = [...(event.dataTransfer?.files ?? [])];
      if (dropped.length === 0) return;
      event.preventDefault();
      void addFiles(store, id, dropped);
    };
    addEventListener("dragover", over);
    addEventListener("drop", drop);
    return () => {
      removeEventListener("dragover", over);
      removeEventListener("drop", drop);
    };
  }, [id]);
}

function lineCount(text: string): number {
  return text.split("\n").length;
}

function addPasted(store: Store, id: string, text: string): void {
  const name = `pasted text, ${count(lineCount(text), "line")}`;
  store.drafts.change(id, { files: [...store.drafts.of(id).value.files, { name, wire: { type: PASTED, text } }] });
}

async function addFiles(store: Store, id: string, list: Iterable<File>): Promise<void> {
  for (const file of list) {
    if (file.size > LARGEST_BYTES) {
      store.problem.value = `${file.name} is larger than 8 MB`;
      continue;
    }
    const data = await base64(file);
    const wire = { type: "blob", data, mimeType: file.type || "application/octet-stream", displayName: file.name };
    store.drafts.change(id, { files: [...store.drafts.of(id).value.files, { name: file.name, wire }] });
  }
}

/** The types of pictures that run nothing. */
const PICTURES = new Set(["image/png", "image/jpeg", "image/gif", "image/webp"]);

function pictureOf(file: Attached): string | undefined {
  const { mimeType, data } = file.wire;
  return typeof data === "string" && PICTURES.has(String(mimeType)) ? `data:${String(mimeType)};base64,${data}` : undefined;
}

function ModelChoice({ store, session }: { store: Store; session: OpenSession }) {
  const models = store.models.value;
  const known = session.state.model ?? store.descriptions.value.get(session.id)?.model ?? session.state.usage.at(-1)?.model ?? "";
  // The name of a model does not always have that of its adapter.
  const current = models.find((model) => model.id === known || model.id.endsWith(`/${known}`))?.id ?? known;
  if (models.length === 0) return <span class="faint">{current}</span>;
  const ids = models.map((model) => model.id);
  return (
    <label class="model-choice"><span class="hidden">Model</span>
      <select value={current} onChange={(event) => void store.switchModel(session.id, event.currentTarget.value)}>
        {!ids.includes(current) && <option value={current}>{current || "default model"}</option>}
        {models.map((model) => <option key={model.id} value={model.id}>{model.name}</option>)}
      </select>
    </label>
  );
}

function base64(file: File): Promise<string> {
  return new Promise((resolve, reject) => {
    const reader = new FileReader();
    reader.onload = () => resolve(String(reader.result).replace(/^[^,]*,/, ""));
    reader.onerror = () => reject(reader.error);
    reader.readAsDataURL(file);
  });
}
