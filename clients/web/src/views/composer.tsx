// The prompt box: text, attachments, steering, stopping and the model.

import { useEffect, useRef, useState } from "preact/hooks";
import type { Attached, OpenSession, Store } from "../store.ts";
import { Icon } from "./common.tsx";

const LARGEST_BYTES = 8 * 1024 * 1024;

export function Composer({ store, session }: { store: Store; session: OpenSession }) {
  const [text, setText] = useState("");
  const [files, setFiles] = useState<Attached[]>([]);
  const box = useRef<HTMLTextAreaElement>(null);
  const picker = useRef<HTMLInputElement>(null);
  const { state } = session;
  const canSend = text.trim() !== "" || files.length > 0;

  const send = async (steer: boolean): Promise<void> => {
    if (!canSend) return;
    if (await store.send(session.id, text, files, steer)) {
      setText("");
      setFiles([]);
      if (box.current) box.current.style.height = "";
    }
  };
  const add = async (list: Iterable<File>): Promise<void> => {
    for (const file of list) {
      if (file.size > LARGEST_BYTES) {
        store.problem.value = `${file.name} is larger than 8 MB`;
        continue;
      }
      const data = await base64(file);
      const wire = { type: "blob", data, mimeType: file.type || "application/octet-stream", displayName: file.name };
      setFiles((before) => [...before, { name: file.name, wire }]);
    }
  };

  useEffect(() => {
    const offered = store.offered.value;
    if (offered.length === 0) return;
    store.offered.value = [];
    setFiles((before) => [...before, ...offered]);
    box.current?.focus();
  }, [store.offered.value]);

  return (
    <form
      class="composer"
      onSubmit={(event) => { event.preventDefault(); void send(state.working); }}
      onDragOver={(event) => event.preventDefault()}
      onDrop={(event) => { event.preventDefault(); void add(event.dataTransfer?.files ?? []); }}
    >
      {session.queued.length > 0 && <p class="faint">Waiting: {session.queued.map((one) => `“${one.slice(0, 60)}”`).join(", ")}</p>}
      {files.length > 0 && (
        <ul class="attachments">
          {files.map((file, at) => (
            <li key={at} class="badge">{file.name}
              <button type="button" class="quiet" aria-label={`Remove ${file.name}`} onClick={() => setFiles(files.filter((_, other) => other !== at))}><Icon name="cross" size={12} /></button>
            </li>
          ))}
        </ul>
      )}
      <label class="hidden" for="prompt">Prompt</label>
      <textarea
        id="prompt" ref={box} rows={1} value={text}
        placeholder={state.working ? "Steer the work in progress…" : "Ask for something…"}
        onInput={(event) => {
          setText(event.currentTarget.value);
          event.currentTarget.style.height = "auto";
          event.currentTarget.style.height = `${Math.min(event.currentTarget.scrollHeight, 260)}px`;
        }}
        onPaste={(event) => {
          const pasted = [...(event.clipboardData?.files ?? [])];
          if (pasted.length > 0) {
            event.preventDefault();
            void add(pasted);
          }
        }}
        onKeyDown={(event) => {
          if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
            event.preventDefault();
            void send(state.working && !(event.ctrlKey || event.metaKey));
          }
        }}
      />
      <div class="composer-row">
        <button type="button" class="quiet" aria-label="Attach files" title="Attach files" onClick={() => picker.current?.click()}><Icon name="clip" /></button>
        <input ref={picker} type="file" multiple hidden onChange={(event) => { void add([...(event.currentTarget.files ?? [])]); event.currentTarget.value = ""; }} />
        <ModelChoice store={store} session={session} />
        <span class="grow" />
        {state.working && canSend && <button type="button" onClick={() => void send(false)} title="Ctrl+Enter">Queue</button>}
        {state.working && <button type="button" class="danger" onClick={() => void store.stop(session.id)}><Icon name="stop" size={14} /> Stop</button>}
        {(!state.working || canSend) && <button type="submit" class="primary" disabled={!canSend}>{state.working ? "Steer" : "Send"} <Icon name="send" size={14} /></button>}
      </div>
    </form>
  );
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
