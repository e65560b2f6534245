// Markdown in blocks that mean the same apart, so that a growing text is rendered again only at its end. Pure.

/** A fence of code: its mark and length, and its first line. */
interface Fence {
  mark: string;
  length: number;
  line: string;
}

const LIST = /^(?:[-*+]|\d{1,9}[.)])(?:\s|$)/;
/** The length from which on code that grows is continued in another block. */
const LONG_CODE = 4000;
/** The length that blocks of a finished text have at least: each costs the parser, the sanitiser and the browser time. */
const SHORTEST = 2000;
/** A line may still become a list or a fence while it has fewer characters. */
const CLEAR = 12;

/**
 * Splits a text that grows. Blocks end at a blank line before a line that begins at the margin, outside of code, and
 * that does not go on with a list.
 */
export class Blocks {
  /** The blocks that no longer change. */
  readonly done: string[] = [];
  private text = "";
  /** Where the last block begins, and the line that is read next. */
  private begin = 0;
  private at = 0;
  private fence: Fence | null = null;
  private isBlank = false;
  private isList = false;
  /** The first line of the code that the last block goes on with. */
  private lead = "";

  /** A text that is still `growing` may have any continuation; its long code is cut, which costs some colours. */
  constructor(readonly growing: boolean, private readonly shortest = growing ? 0 : SHORTEST) {}

  /** Read the text so far, which begins with the one before; returns false if it does not. */
  read(text: string): boolean {
    if (!text.startsWith(this.text)) return false;
    this.text = text;
    while (this.at < text.length) {
      const found = text.indexOf("\n", this.at);
      const end = found < 0 ? text.length : found;
      const line = text.slice(this.at, end);
      if (found < 0 && line.length < CLEAR && this.growing) break;
      if (this.isBlank && this.fence === null && line.trim() !== "") {
        const isList = LIST.test(line);
        if (!/^\s/.test(line) && !(this.isList && isList)) {
          if (this.at - this.begin >= this.shortest) this.cut();
          this.isList = isList;
        }
        this.isBlank = false;
      } else if (this.at === this.begin) this.isList = LIST.test(line);
      // The rest of a line that is not complete belongs to the block in any case.
      if (found < 0) break;
      this.endLine(line);
      this.at = end + 1;
      // Code in a list is indented, and goes on with the list.
      if (this.growing && this.fence && !this.isList && this.at - this.begin > LONG_CODE) {
        const { mark, length, line: first } = this.fence;
        this.cut(`${mark.repeat(length)}\n`);
        this.lead = `${first}\n`;
      }
    }
    return true;
  }

  /** The block that may still grow; empty if there is none. */
  get last(): string {
    return this.begin < this.text.length ? this.lead + this.text.slice(this.begin) : "";
  }

  private cut(end = ""): void {
    this.done.push(this.lead + this.text.slice(this.begin, this.at) + end);
    this.begin = this.at;
    this.lead = "";
  }

  private endLine(line: string): void {
    const mark = /^\s*(`{3,}|~{3,})(.*)$/.exec(line);
    if (this.fence) {
      if (mark && mark[1]![0] === this.fence.mark && mark[1]!.length >= this.fence.length && mark[2]!.trim() === "") this.fence = null;
    } else if (mark && !(mark[1]![0] === "`" && mark[2]!.includes("`"))) this.fence = { mark: mark[1]![0]!, length: mark[1]!.length, line };
    this.isBlank = line.trim() === "";
  }
}

/** Return whether blocks refer to a definition of another one, so that the text means something else as a whole. */
export function hasDefinitions(text: string): boolean {
  return /^ {0,3}\[[^\]\n]{1,200}\]:/m.test(text);
}
