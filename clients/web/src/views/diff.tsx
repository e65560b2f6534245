// A unified diff with the old lines on the left and the new ones on the right.

import { useContext, useMemo, useState } from "preact/hooks";
import { HostContext } from "../host.ts";
import { sideBySide, type DiffRow, type Side } from "../state/diff.ts";

/** The rows that are shown at first. */
const FIRST_ROWS = 400;

export function Diff({ text, folder = "" }: { text: string; folder?: string }) {
  const files = useMemo(() => sideBySide(text), [text]);
  if (files.length === 0) return <pre class="output" tabIndex={0}>{text}</pre>;
  return <>{files.map((file) => <FileTable key={file.path} path={shown(file.path, folder)} folder={folder} rows={file.rows} added={file.added} removed={file.removed} />)}</>;
}

/** Return a path relative to the folder of the session, if it is inside. Diffs leave out the first slash. */
function shown(path: string, folder: string): string {
  const whole = folder && `/${path}`.startsWith(`${folder}/`) ? `/${path}` : path;
  return folder && whole.startsWith(`${folder}/`) ? whole.slice(folder.length + 1) : path;
}

function FileTable({ path, folder, rows, added, removed }: { path: string; folder: string; rows: DiffRow[]; added: number; removed: number }) {
  const [all, setAll] = useState(false);
  const { openFile } = useContext(HostContext);
  const line = rows.find((row) => row.kind !== "same" && row.right)?.right?.line ?? null;
  const lines = all ? rows : rows.slice(0, FIRST_ROWS);
  return (
    <div class="diff">
      <div class="diff-name">{openFile
        ? <button type="button" class="link" onClick={() => openFile(path.startsWith("/") || !folder ? path : `${folder}/${path}`, line)}><code>{path}</code></button>
        : <code>{path}</code>} <span class="added">+{added}</span> <span class="removed">−{removed}</span></div>
      <div class="diff-scroll" tabIndex={0} role="group" aria-label={`Changes of ${path}`}>
        <table>
          <caption class="hidden">Changes of {path}: before on the left, after on the right</caption>
          <colgroup><col class="number" /><col /><col class="number" /><col /></colgroup>
          <tbody>
            {lines.map((row, at) => row.kind === "gap"
              ? <tr key={at} class="gap"><td colSpan={4}>⋯</td></tr>
              : <tr key={at} class={`line-${row.kind}`}><SideCells side={row.left} mark="−" kind={row.kind} /><SideCells side={row.right} mark="+" kind={row.kind} /></tr>)}
          </tbody>
        </table>
      </div>
      {lines.length < rows.length && <button type="button" class="link" onClick={() => setAll(true)}>Show {rows.length - lines.length} more lines</button>}
    </div>
  );
}

function SideCells({ side, mark, kind }: { side: Side | null; mark: string; kind: DiffRow["kind"] }) {
  if (!side) return <><td class="number" /><td class="empty" /></>;
  return (
    <>
      <td class="number">{side.line}</td>
      <td class={kind === "same" ? "text" : `text side-${mark === "+" ? "new" : "old"}`}>
        {kind !== "same" && <span class="hidden">{mark === "+" ? "added: " : "removed: "}</span>}
        {side.parts.map((part, at) => (part.changed ? <mark key={at}>{part.text}</mark> : part.text))}
      </td>
    </>
  );
}
