// What a tool call shows: its output, its changes and a summary in one line. Pure.

import type { CallRow } from "./types.ts";

const SHELLS = new Set(["bash", "read_bash", "write_bash", "stop_bash"]);

interface CallOutput {
  output: string;
  diff: string;
  pictures: string[];
  exitCode: number | null;
}

/** Return the output of a call from its `tool.execution_complete`. */
export function callOutput(tool: string, data: any): CallOutput {
  const result = data.result;
  const detail: string | undefined = result?.detailedContent ?? undefined;
  const content: string = result?.content ?? "";
  const pictures = (result?.binaryResultsForLlm ?? [])
    .filter((one: any) => /^image\/(png|jpeg|gif|webp)$/.test(one?.mimeType ?? "") && typeof one.data === "string")
    .map((one: any) => `data:${one.mimeType};base64,${one.data}`);
  if (!data.success) {
    const output = detail ?? data.error?.message ?? content;
    return { output, diff: isDiff(detail) ? detail! : "", pictures, exitCode: null };
  }
  if (isDiff(detail)) return { output: "", diff: detail!, pictures, exitCode: null };
  if (SHELLS.has(tool)) return { ...splitShell(content), diff: "", pictures };
  return { output: detail ?? content, diff: "", pictures, exitCode: null };
}

/** Split the result of a shell tool into its output and its exit code; the last line is `<status>`. */
export function splitShell(content: string): { output: string; exitCode: number | null } {
  const text = content.trimEnd();
  const at = text.lastIndexOf("\n");
  const status = text.slice(at + 1);
  if (!(status.startsWith("<") && status.endsWith(">"))) return { output: content, exitCode: null };
  const code = /^<exited with exit code (-?\d+)>$/.exec(status)?.[1];
  const output = at < 0 ? "" : text.slice(0, at);
  return code === undefined ? { output: text, exitCode: null } : { output, exitCode: Number(code) };
}

function isDiff(text: string | undefined): boolean {
  return text !== undefined && text.startsWith("--- ");
}

/** Return the argument of a call that says most about it, for the heading. */
export function toolText(args: unknown, intention: string | null): string {
  if (args && typeof args === "object") {
    const values = args as Record<string, unknown>;
    for (const name of ["command", "pattern", "path", "file_path", "filePath", "url", "query", "question", "description", "prompt", "skill"]) {
      const value = values[name];
      if (typeof value === "string" && value) return value;
    }
    const first = Object.entries(values)[0];
    if (first) return `${first[0]}: ${typeof first[1] === "string" ? first[1] : JSON.stringify(first[1])}`;
  }
  return intention ?? "";
}

/** Count the added and removed lines of a unified diff. */
export function countChanges(diff: string): { added: number; removed: number } {
  let added = 0;
  let removed = 0;
  let inHunk = false;
  for (const line of diff.split("\n")) {
    if (line.startsWith("@@")) inHunk = true;
    else if (inHunk && line.startsWith("+")) added += 1;
    else if (inHunk && line.startsWith("-")) removed += 1;
    if (line.startsWith("--- ") && !inHunk) inHunk = false;
  }
  return { added, removed };
}

/** Return the time of a call so far without its waits for approvals, as the timeline counts it; null before it has begun. */
export function workMs(row: CallRow, now: number): number | null {
  if (row.start === null) return null;
  const end = row.end ?? now;
  const waits = row.decisions.reduce((sum, one) => sum + Math.max(0, Math.min(end, one.time) - Math.max(row.start!, one.asked)), 0);
  return Math.max(0, end - row.start - waits);
}

/** Counts the lines that a file has gained and lost after several changes: one that is added and removed again is neither. */
export class NetChanges {
  removed = 0;
  /** The numbers of the lines that were added, as they are now. */
  private numbers: number[] = [];

  get added(): number {
    return this.numbers.length;
  }

  /** Count a unified diff of the file as the one before has left it. */
  apply(diff: string): void {
    const gone = new Set<number>();
    const come: number[] = [];
    /** Where lines move from a number on, and by how much. */
    const moves: [number, number][] = [];
    let [before, after] = [0, 0];
    for (const line of diff.split("\n")) {
      const hunk = /^@@ -(\d+)(,0)?\S* \+(\d+)(,0)?/.exec(line);
      // Without lines, the number is that of the line before.
      if (hunk) [before, after] = [Number(hunk[1]) + (hunk[2] ? 1 : 0), Number(hunk[3]) + (hunk[4] ? 1 : 0)];
      else if (before === 0 && after === 0) continue;
      else if (line.startsWith("-")) gone.add(before++);
      else if (line.startsWith("+")) come.push(after++);
      else if (line.startsWith(" ") || line === "") [before, after] = [before + 1, after + 1];
      moves.push([before, after - before]);
    }
    const kept = this.numbers.filter((number) => !gone.has(number));
    this.removed += gone.size - (this.numbers.length - kept.length);
    const moved = kept.map((number) => number + (moves.findLast(([from]) => from <= number)?.[1] ?? 0));
    this.numbers = [...moved, ...come];
  }
}
