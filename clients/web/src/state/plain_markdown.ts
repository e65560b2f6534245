// Markdown whose markup is text, as the page shows it: a viewer that runs HTML finds none. Pure.
//
// What is code stays as it is. Viewers differ in what they take for code in lists and quotes; wherever two of them
// may disagree, the rest of the text counts as no code, and a "<" in its code is "&lt;".

const FENCE = /^( *)(`{3,}(?!`)|~{3,}(?!~))([^]*)$/;
const DEFINITION = /^[\s>*+\-\d.)]*\[[^\]]*\]:/;
const MOST_INDENTED = 3;
/** Longer lines are searched for no code. */
const LONGEST_LINE = 2000;

/** Return Markdown without markup of HTML outside of code. A block of code that does not end is ended. */
export function plainMarkdown(text: string): string {
  const made: string[] = [];
  /** Whether no code since the last blank line may go on in the next one. */
  let isWhole = true;
  let isClear = true;
  let open: { indent: number; marks: string } | null = null;
  for (const line of text.split(/\r\n?|\n/)) {
    const fence = FENCE.exec(line);
    if (open && isClear) {
      const { indent, marks } = open;
      const isEnd = fence !== null && fence[2]!.startsWith(marks) && fence[3]!.trim() === "";
      const mayEnd = line.trim().startsWith(marks);
      if (isEnd && fence[1]!.length === indent) open = null;
      else if (mayEnd || (line.trim() !== "" && !line.startsWith(" ".repeat(indent)))) isClear = false;
      if (isClear) {
        made.push(line);
        continue;
      }
    } else if (isClear && fence && fence[1]!.length <= MOST_INDENTED && !(fence[2]!.startsWith("`") && fence[3]!.includes("`"))) {
      open = { indent: fence[1]!.length, marks: fence[2]! };
      isWhole = true;
      made.push(line.replaceAll("<", "&lt;"));
      continue;
    } else if (/`{3}|~{3}/.test(line)) {
      isClear = false;
    }
    if (line.trim() === "") isWhole = true;
    // A definition of a link may take what follows as its address or title.
    if (DEFINITION.test(line)) isClear = false;
    const [safe, rest] = withoutTags(line, isClear && isWhole);
    if (rest) isWhole = false;
    made.push(safe);
  }
  if (open && isClear) made.push(" ".repeat(open.indent) + open.marks);
  return made.join("\n");
}

/** Return a line without tags, and whether it has marks of code that may end on another line. */
function withoutTags(line: string, keepsCode: boolean): [string, boolean] {
  if (line.length > LONGEST_LINE) return [escaped(line), line.includes("`")];
  let safe = "";
  let rest = false;
  for (let at = 0; at < line.length;) {
    const run = /^`+/.exec(line.slice(at))?.[0] ?? "";
    if (line[at] === "\\") {
      safe += line.slice(at, at + 2);
      at += 2;
    } else if (run) {
      const end = endOf(line, at + run.length, run.length);
      const code = line.slice(at, end < 0 ? at + run.length : end);
      // The cells of a table end at each line, also within code.
      safe += end >= 0 && keepsCode && !code.includes("|") ? code : escaped(code);
      if (end < 0) rest = true;
      at += code.length;
    } else {
      const next = line.slice(at).search(/[`\\]/);
      const part = next < 0 ? line.slice(at) : line.slice(at, at + next);
      safe += escaped(part);
      at += part.length;
    }
  }
  return [safe, rest];
}

/** Return where code ends that was begun by so many marks; -1 if it does not end on this line. */
function endOf(line: string, from: number, marks: number): number {
  for (const found of line.slice(from).matchAll(/`+/g)) {
    if (found[0].length === marks) return from + found.index + marks;
  }
  return -1;
}

function escaped(text: string): string {
  return text.replace(/<(?=[A-Za-z/!?]|$)/g, "&lt;");
}
