// Going back to before a prompt: what would be lost, and which files would be restored.

import { useEffect, useRef, useState } from "preact/hooks";
import type { OpenSession, Store } from "../store.ts";

export function RewindDialog({ store, session, eventId, onClose }: { store: Store; session: OpenSession; eventId: string; onClose: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  const [files, setFiles] = useState<{ path: string; changeType: string }[] | null>(null);
  const [why, setWhy] = useState("");
  const at = session.state.rows.findIndex((row) => row.eventId === eventId);
  useEffect(() => {
    dialog.current?.showModal();
    store.rpc.call("session.history.previewRewind", { sessionId: session.id, eventId }).then(
      (preview: any) => setFiles(preview.available ? preview.files : null),
      (error) => setWhy(error.message),
    );
  }, []);
  const rewind = async (withFiles: boolean): Promise<void> => {
    if (await store.rewind(session.id, eventId, withFiles)) dialog.current?.close();
  };
  return (
    <dialog ref={dialog} onClose={onClose} aria-labelledby="rewind-title">
      <h2 id="rewind-title">Go back to before this prompt?</h2>
      <p>This prompt and {session.state.rows.length - at - 1} later entries are removed from the session.</p>
      {session.status !== "live" && <p class="note warning">The session is stored: continue it here first.</p>}
      {why && <p class="note warning">{why}</p>}
      {files && files.length > 0 && (
        <>
          <p>Files that would be restored, unless you have changed them since:</p>
          <ul class="files">{files.map((file) => <li key={file.path}><code>{file.path}</code> <span class="faint">{file.changeType}</span></li>)}</ul>
        </>
      )}
      {files && files.length === 0 && <p class="faint">No files were changed since.</p>}
      <div class="choices">
        {session.status === "live" && files && files.length > 0 && <button type="button" class="danger" onClick={() => void rewind(true)}>Rewind, with the files</button>}
        {session.status === "live" && <button type="button" class="danger" onClick={() => void rewind(false)}>Rewind the conversation</button>}
        <button type="button" onClick={() => dialog.current?.close()}>Cancel</button>
      </div>
    </dialog>
  );
}
