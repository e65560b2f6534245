// Texts that would hold up the page, which has one thread for everything.

/** The length of a text, and the numbers in one paragraph or table, from which on Markdown is not parsed. */
export const LONGEST_TEXT = 200_000;
const MOST_MARKS = 1500;
const MOST_LINES = 2000;
const DEEPEST = 40;

/** Return whether the parser takes more than linear time or a deep stack for a text. Code in fences takes neither. */
export function isCostly(text: string): boolean {
  if (text.length > LONGEST_TEXT) return true;
  let marks = 0;
  let lines = 0;
  let fence = "";
  for (const line of text.split("\n")) {
    const mark = /^ {0,3}(```|~~~)/.exec(line)?.[1] ?? "";
    if (fence) {
      if (mark === fence) fence = "";
      continue;
    }
    fence = mark;
    if (fence || line.trim() === "") {
      marks = 0;
      lines = 0;
      continue;
    }
    lines += 1;
    marks += count(line, /[*_~`<\[\]|!]+/g);
    const lead = /^[\s>*+-]*/.exec(line)![0];
    if (marks > MOST_MARKS || lines > MOST_LINES || count(lead, /[>*+-]/g) > DEEPEST || /^\s*/.exec(line)![0].length > 4 * DEEPEST) return true;
  }
  return false;
}

function count(text: string, pattern: RegExp): number {
  return text.match(pattern)?.length ?? 0;
}
