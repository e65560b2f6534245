// The name of a session.

import { useEffect, useRef, useState } from "preact/hooks";
import type { Store } from "../store.ts";

export function RenameDialog({ store, id, title, onClose }: { store: Store; id: string; title: string; onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [name, setName] = useState(title);
  useEffect(() => dialog.current?.showModal(), []);
  const submit = async (event: Event): Promise<void> => {
    event.preventDefault();
    if (name.trim() && await store.rename(id, name.trim())) dialog.current?.close();
  };
  return (
    <dialog ref={dialog} onClose={onClose} aria-labelledby="rename-title">
      <form onSubmit={(event) => void submit(event)}>
        <h2 id="rename-title">Rename the session</h2>
        <label class="field">Name<input value={name} onInput={(event) => setName(event.currentTarget.value)} /></label>
        <div class="choices">
          <button type="submit" class="primary" disabled={!name.trim()}>Rename</button>
          <button type="button" onClick={() => dialog.current?.close()}>Cancel</button>
        </div>
      </form>
    </dialog>
  );
}
