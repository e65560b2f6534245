// Unified diffs as rows of two sides, with the changed words of each line. Pure.

import { diffWordsWithSpace, parsePatch } from "diff";

export interface Part {
  text: string;
  changed: boolean;
}

export interface Side {
  line: number;
  parts: Part[];
}

export interface DiffRow {
  kind: "same" | "changed" | "added" | "removed" | "gap";
  left: Side | null;
  right: Side | null;
}

export interface FileDiff {
  path: string;
  rows: DiffRow[];
  added: number;
  removed: number;
}

/** Lines that are longer are not compared word by word. */
const LONGEST_LINE = 2000;
/** The share of a line that must be unchanged for its changed words to be marked. */
const LEAST_COMMON = 0.4;

/** Return the files of a unified diff; an empty array if it cannot be parsed. */
export function sideBySide(text: string): FileDiff[] {
  let patches;
  try {
    patches = parsePatch(text);
  } catch {
    return [];
  }
  return patches.filter((patch) => patch.hunks.length > 0).map((patch) => {
    const name = patch.newFileName && patch.newFileName !== "/dev/null" ? patch.newFileName : patch.oldFileName ?? "";
    const file: FileDiff = { path: name.replace(/^[ab]\//, ""), rows: [], added: 0, removed: 0 };
    patch.hunks.forEach((hunk, at) => {
      if (at > 0) file.rows.push({ kind: "gap", left: null, right: null });
      addHunk(file, hunk.lines, hunk.oldStart, hunk.newStart);
    });
    return file;
  });
}

function addHunk(file: FileDiff, lines: readonly string[], oldStart: number, newStart: number): void {
  let left = oldStart;
  let right = newStart;
  let removed: string[] = [];
  let added: string[] = [];
  const flush = (): void => {
    for (const [before, after] of pairs(removed, added)) {
      const [one, other] = before !== undefined && after !== undefined ? words(before, after) : [plain(before), plain(after)];
      file.rows.push({
        kind: before === undefined ? "added" : after === undefined ? "removed" : "changed",
        left: before === undefined ? null : { line: left++, parts: one },
        right: after === undefined ? null : { line: right++, parts: other },
      });
    }
    removed = [];
    added = [];
  };
  for (const line of lines) {
    const text = line.slice(1);
    if (line.startsWith("-")) {
      // A removal after an addition begins another change.
      if (added.length > 0) flush();
      removed.push(text);
      file.removed += 1;
    } else if (line.startsWith("+")) {
      added.push(text);
      file.added += 1;
    } else if (!line.startsWith("\\")) {
      flush();
      file.rows.push({ kind: "same", left: { line: left++, parts: plain(text) }, right: { line: right++, parts: plain(text) } });
    }
  }
  flush();
}

/** Return a text with the paths in a folder made relative to it; the folder itself becomes ".". */
export function withoutFolder(text: string, folder: string): string {
  const root = folder.replace(/\/$/, "");
  if (!root) return text;
  const short = text.replaceAll(`${root}/`, "");
  return short.endsWith(` ${root}`) ? `${short.slice(0, -root.length)}.` : short;
}

/** Return a path relative to the folder of the session, if it is inside. Diffs leave out the first slash. */
export function shownPath(path: string, folder: string): string {
  const whole = folder && `/${path}`.startsWith(`${folder}/`) ? `/${path}` : path;
  return folder && whole.startsWith(`${folder}/`) ? whole.slice(folder.length + 1) : path;
}

/** A line of a diff with the old lines of a change before the new ones. */
export interface UnifiedRow {
  kind: "same" | "old" | "new" | "gap";
  side: Side | null;
}

/** Return the rows of a diff one below the other, as where there is no room for two sides. */
export function unified(rows: readonly DiffRow[]): UnifiedRow[] {
  const found: UnifiedRow[] = [];
  let added: Side[] = [];
  const flush = (): void => {
    for (const side of added) found.push({ kind: "new", side });
    added = [];
  };
  for (const row of rows) {
    if (row.kind === "gap" || row.kind === "same") {
      flush();
      found.push({ kind: row.kind, side: row.right });
      continue;
    }
    if (row.left) found.push({ kind: "old", side: row.left });
    if (row.right) added.push(row.right);
  }
  flush();
  return found;
}

/** The lines of a change of which similar ones are found; those of longer changes are paired in their order. */
const MOST_PAIRED = 40;

/** Pair the removed lines with the added ones that they have become, in their order. */
function pairs(removed: readonly string[], added: readonly string[]): [string | undefined, string | undefined][] {
  if (removed.length === added.length || removed.length > MOST_PAIRED || added.length > MOST_PAIRED) {
    return Array.from({ length: Math.max(removed.length, added.length) }, (_, at) => [removed[at], added[at]]);
  }
  // The greatest sum of similarities of the lines from each place on.
  const best: number[][] = Array.from({ length: removed.length + 1 }, () => Array<number>(added.length + 1).fill(0));
  for (let one = removed.length - 1; one >= 0; one--) {
    for (let other = added.length - 1; other >= 0; other--) {
      best[one]![other] = Math.max(best[one + 1]![other]!, best[one]![other + 1]!, best[one + 1]![other + 1]! + similarity(removed[one]!, added[other]!));
    }
  }
  const found: [string | undefined, string | undefined][] = [];
  let one = 0;
  let other = 0;
  while (one < removed.length || other < added.length) {
    const now = best[one]?.[other] ?? 0;
    if (one < removed.length && other < added.length && now > 0 && now === best[one + 1]![other + 1]! + similarity(removed[one]!, added[other]!)) {
      found.push([removed[one++], added[other++]]);
    } else if (one < removed.length && (other >= added.length || now === best[one + 1]![other])) found.push([removed[one++], undefined]);
    else found.push([undefined, added[other++]]);
  }
  return found;
}

/** Return the share of words that two lines have in common; 0 for lines with little in common. */
function similarity(one: string, other: string): number {
  const words = new Set(one.match(/\w+/g) ?? []);
  const others = new Set(other.match(/\w+/g) ?? []);
  const common = [...words].filter((word) => others.has(word)).length;
  const share = common / Math.max(1, words.size, others.size);
  return share >= LEAST_COMMON ? share : 0;
}

function plain(text: string | undefined): Part[] {
  return text === undefined ? [] : [{ text, changed: false }];
}

function words(before: string, after: string): [Part[], Part[]] {
  if (before.length > LONGEST_LINE || after.length > LONGEST_LINE) return [plain(before), plain(after)];
  const parts = diffWordsWithSpace(before, after);
  const common = parts.filter((part) => !part.added && !part.removed).reduce((sum, part) => sum + part.value.trim().length, 0);
  // In lines that have little in common, marks of words only confuse.
  if (common < LEAST_COMMON * Math.max(before.trim().length, after.trim().length)) return [plain(before), plain(after)];
  return [
    parts.filter((part) => !part.added).map((part) => ({ text: part.value, changed: part.removed === true })),
    parts.filter((part) => !part.removed).map((part) => ({ text: part.value, changed: part.added === true })),
  ];
}
