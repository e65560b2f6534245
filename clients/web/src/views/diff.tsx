// A unified diff: the old lines on the left and the new ones on the right or, where there is no room, the old ones first.

import { useContext, useLayoutEffect, useMemo, useRef, useState } from "preact/hooks";
import { HostContext } from "../host.ts";
import { shownPath, sideBySide, unified, type DiffRow, type Side } from "../state/diff.ts";

/** The rows that are shown at first. */
const FIRST_ROWS = 400;
/** The width of a diff in pixels from which on it has two sides. */
const TWO_SIDES_PX = 620;

/** A diff whose place in the file is not known (`isPlaced`) has no numbers of lines. */
export function Diff({ text, folder = "", isPlaced = true }: { text: string; folder?: string; isPlaced?: boolean }) {
  const files = useMemo(() => sideBySide(text), [text]);
  if (files.length === 0) return <pre class="output" tabIndex={0}>{text}</pre>;
  return <>{files.map((file) => <FileTable key={file.path} path={shownPath(file.path, folder)} folder={folder} rows={file.rows} added={file.added} removed={file.removed} isPlaced={isPlaced} />)}</>;
}

interface FileProps { path: string; folder: string; rows: DiffRow[]; added: number; removed: number; isPlaced: boolean }

function FileTable({ path, folder, rows, added, removed, isPlaced }: FileProps) {
  const [all, setAll] = useState(false);
  const { openFile } = useContext(HostContext);
  const frame = useRef<HTMLDivElement>(null);
  const isWide = useIsWide(frame);
  const line = !isPlaced ? null : rows.find((row) => row.kind !== "same" && row.right)?.right?.line ?? null;
  const lines = all ? rows : rows.slice(0, FIRST_ROWS);
  return (
    <div class={isPlaced ? "diff" : "diff unplaced"} ref={frame}>
      <div class="diff-name">{openFile
        ? <button type="button" class="link" onClick={() => openFile(path.startsWith("/") || !folder ? path : `${folder}/${path}`, line)}><code>{path}</code></button>
        : <code>{path}</code>} <span class="added">+{added}</span> <span class="removed">−{removed}</span></div>
      <div class="diff-scroll" tabIndex={0} role="group" aria-label={`Changes of ${path}`}>
        {isWide && rows.some((row) => row.left) && rows.some((row) => row.right) ? <TwoSides path={path} rows={lines} /> : <OneBelowTheOther path={path} rows={lines} />}
      </div>
      {lines.length < rows.length && <button type="button" class="link" onClick={() => setAll(true)}>Show {rows.length - lines.length} more lines</button>}
    </div>
  );
}

/** Return whether an element has room for two sides, before it is first painted and whenever it changes. */
function useIsWide(frame: { current: HTMLElement | null }): boolean {
  const [isWide, setWide] = useState(() => innerWidth > 2 * TWO_SIDES_PX);
  useLayoutEffect(() => {
    const box = frame.current;
    if (!box) return;
    const look = (): void => { if (box.clientWidth > 0) setWide(box.clientWidth >= TWO_SIDES_PX); };
    look();
    const sizes = new ResizeObserver(look);
    sizes.observe(box);
    return () => sizes.disconnect();
  }, []);
  return isWide;
}

function TwoSides({ path, rows }: { path: string; rows: readonly DiffRow[] }) {
  return (
    <table>
      <caption class="hidden">Changes of {path}: before on the left, after on the right</caption>
      <colgroup><col class="number" /><col /><col class="number" /><col /></colgroup>
      <tbody>
        {rows.map((row, at) => row.kind === "gap"
          ? <tr key={at} class="gap"><td colSpan={4}>⋯</td></tr>
          : <tr key={at} class={`line-${row.kind}`}><Cells side={row.left} kind={row.kind === "same" ? "same" : "old"} /><Cells side={row.right} kind={row.kind === "same" ? "same" : "new"} /></tr>)}
      </tbody>
    </table>
  );
}

function OneBelowTheOther({ path, rows }: { path: string; rows: readonly DiffRow[] }) {
  const lines = useMemo(() => unified(rows), [rows]);
  return (
    <table>
      <caption class="hidden">Changes of {path}: removed lines before added ones</caption>
      <colgroup><col class="number" /><col /></colgroup>
      <tbody>
        {lines.map((row, at) => row.kind === "gap"
          ? <tr key={at} class="gap"><td colSpan={2}>⋯</td></tr>
          : <tr key={at} class={row.kind === "same" ? "line-same" : row.kind === "old" ? "line-removed" : "line-added"}><Cells side={row.side} kind={row.kind} /></tr>)}
      </tbody>
    </table>
  );
}

function Cells({ side, kind }: { side: Side | null; kind: "same" | "old" | "new" }) {
  if (!side) return <><td class="number" /><td class="empty" /></>;
  return (
    <>
      <td class="number">{side.line}</td>
      <td class={kind === "same" ? "text" : `text side-${kind}`}>
        {kind !== "same" && <span class="hidden">{kind === "new" ? "added: " : "removed: "}</span>}
        {side.parts.map((part, at) => (part.changed ? <mark key={at}>{part.text}</mark> : part.text))}
      </td>
    </>
  );
}
