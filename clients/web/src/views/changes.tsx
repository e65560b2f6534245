// The files that a session has changed: a tree, the final diff of each, and taking changes back.

import { useContext, useEffect, useMemo, useRef, useState } from "preact/hooks";
import { HostContext } from "../host.ts";
import type { Methods } from "../generated/wire.ts";
import { shownPath } from "../state/diff.ts";
import { count } from "../state/format.ts";
import { treeOf, type Folder } from "../state/tree.ts";
import type { OpenSession, Store } from "../store.ts";
import { Settled } from "./common.tsx";
import { Diff } from "./diff.tsx";

/** The calls that end in this time are asked about once. */
const SETTLED_MS = 150;

type ChangedFile = Methods["jumpseat.changes.files"]["result"]["files"][number];

const MARKS: Record<ChangedFile["change"], string> = { created: "new", modified: "", deleted: "deleted" };

export function ChangesView({ store, session, at }: { store: Store; session: OpenSession; at: string | null }) {
  const { state, status } = session;
  const [files, setFiles] = useState<readonly ChangedFile[] | null>(null);
  const [problem, setProblem] = useState("");
  const [chosen, setChosen] = useState<string | null>(at);
  const [outcome, setOutcome] = useState("");
  const latest = useRef(0);
  const read = async (): Promise<void> => {
    const mine = latest.current += 1;
    try {
      const found = await store.rpc.call("jumpseat.changes.files", { sessionId: session.id });
      if (mine !== latest.current) return;
      setFiles(found.files);
      setProblem("");
    } catch (error) {
      if (mine === latest.current) setProblem(error instanceof Error ? error.message : String(error));
    }
  };
  useEffect(() => {
    if (status === "loading") return;
    // Many calls may end at once.
    const timer = setTimeout(() => void read(), latest.current === 0 ? 0 : SETTLED_MS);
    return () => clearTimeout(timer);
  }, [status, state.changesVersion, state.working]);
  useEffect(() => setChosen(at), [at]);
  const tree = useMemo(() => treeOf(files ?? [], state.folder), [files, state.folder]);
  const undo = async (path: string | null): Promise<void> => {
    setOutcome("");
    try {
      const { undone, left } = await store.rpc.call("jumpseat.changes.undoFiles", { sessionId: session.id, ...(path === null ? {} : { path }) });
      const kept = left.map((file) => `${shownPath(file.path, state.folder)} ${file.reason}`);
      setOutcome([undone.length > 0 ? `${count(undone.length, "file")} as before.` : "Nothing was undone.", ...kept.map((one) => `${one}.`)].join(" "));
    } catch (error) {
      setOutcome(error instanceof Error ? error.message : String(error));
    }
    await read();
  };

  if (problem) return <div class="page"><p class="note error" role="alert">{problem}</p></div>;
  if (files === null) return <div class="page"><p class="faint">Loading…</p></div>;
  const canUndo = status === "live" && !state.working;
  const added = files.reduce((sum, file) => sum + (file.added ?? 0), 0);
  const removed = files.reduce((sum, file) => sum + (file.removed ?? 0), 0);
  // A link of a transcript may name the path without its first slash.
  const file = files.find((one) => one.path === chosen || one.path === `/${chosen}`) ?? files[0];
  return (
    <div class="changes" role="region" aria-label="Changes">
      <header class="changes-head">
        <span>{files.length === 0 ? "No tool has left a changed file." : <>{count(files.length, "file")} <span class="added">+{added}</span> <span class="removed">−{removed}</span></>}</span>
        <span class="faint">By file tools, and by commands if the session tracks files.</span>
        <span class="grow" />
        {files.length > 1 && <Undo label="Undo all" confirm={`Undo the changes of ${count(files.length, "file")}`} enabled={canUndo} onUndo={() => undo(null)} />}
      </header>
      <p class="faint changes-outcome" role="status">{outcome}</p>
      {file && (
        <div class="changes-body">
          <nav class="tree" aria-label="Changed files"><Branch folder={tree} chosen={file.path} onChoose={setChosen} /></nav>
          <FileView key={file.path} file={file} folder={state.folder} canUndo={canUndo} onUndo={() => undo(file.path)} />
        </div>
      )}
    </div>
  );
}

function Branch({ folder, chosen, onChoose }: { folder: Folder<ChangedFile>; chosen: string; onChoose: (path: string) => void }) {
  return (
    <ul>
      {folder.folders.map((one) => <li key={one.name}><span class="tree-folder">{one.name}/</span><Branch folder={one} chosen={chosen} onChoose={onChoose} /></li>)}
      {folder.files.map(({ name, file }) => (
        <li key={file.path}>
          <button type="button" class={file.path === chosen ? "tree-file chosen" : "tree-file"} aria-current={file.path === chosen ? "true" : undefined} title={file.path} onClick={() => onChoose(file.path)}>
            <span class="tree-name">{name}</span>{MARKS[file.change] && <span class="badge">{MARKS[file.change]}</span>} <span class="added">+{file.added ?? 0}</span> <span class="removed">−{file.removed ?? 0}</span>
          </button>
        </li>
      ))}
    </ul>
  );
}

function FileView({ file, folder, canUndo, onUndo }: { file: ChangedFile; folder: string; canUndo: boolean; onUndo: () => Promise<void> }) {
  const { openFile } = useContext(HostContext);
  return (
    <section class="change-file" aria-label={`Changes of ${shownPath(file.path, folder)}`}>
      <div class="change-head">
        {openFile && file.change !== "deleted" && <button type="button" class="link" onClick={() => openFile(file.path, null)}>Open in the editor</button>}
        {file.state === "changed-since" && <span class="faint">It was changed since, and stays as it is.</span>}
        {file.state === "not-kept" && <span class="faint">It was too large to keep its earlier content.</span>}
        <span class="grow" />
        <Undo label="Undo this file" confirm={file.change === "created" ? "Delete the new file" : file.change === "deleted" ? "Restore the file" : "Undo its changes"} enabled={canUndo && file.state === "as-left"} onUndo={onUndo} />
      </div>
      {file.diff ? <Diff text={file.diff} folder={folder} /> : <p class="faint">The change cannot be shown: the file is no text, or the change is too long.</p>}
    </section>
  );
}

/** A button that asks once more, because what it does cannot be taken back. */
function Undo({ label, confirm, enabled, onUndo }: { label: string; confirm: string; enabled: boolean; onUndo: () => Promise<void> }) {
  const [asked, setAsked] = useState(false);
  const [busy, setBusy] = useState(false);
  const run = async (): Promise<void> => {
    setBusy(true);
    await onUndo();
    setBusy(false);
    setAsked(false);
  };
  if (!asked) return <button type="button" disabled={!enabled} onClick={() => setAsked(true)}>{label}</button>;
  return (
    <Settled class="undo-asked">
      <button type="button" onClick={() => setAsked(false)}>Keep</button>
      <button type="button" class="danger" disabled={busy || !enabled} onClick={() => void run()}>{confirm}</button>
    </Settled>
  );
}
