// Deleting a session, after a question.

import { useEffect, useRef, useState } from "preact/hooks";
import { go } from "../route.ts";
import type { Store } from "../store.ts";

export function DeleteDialog({ store, id, title, onClose }: { store: Store; id: string; title: string; onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [busy, setBusy] = useState(false);
  useEffect(() => dialog.current?.showModal(), []);
  const remove = async (): Promise<void> => {
    setBusy(true);
    if (await store.delete(id)) go({ view: "home" });
    else {
      setBusy(false);
      dialog.current?.close();
    }
  };
  return (
    <dialog ref={dialog} onClose={onClose} aria-labelledby="delete-title">
      <h2 id="delete-title">Delete this session?</h2>
      <p dir="auto">{title}</p>
      <p>Its conversation and its own files are removed for good. Files of the project stay as they are.</p>
      <div class="choices">
        <button type="button" class="danger" disabled={busy} onClick={() => void remove()}>Delete</button>
        <button type="button" autoFocus onClick={() => dialog.current?.close()}>Keep it</button>
      </div>
    </dialog>
  );
}
