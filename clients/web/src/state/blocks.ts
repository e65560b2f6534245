// Markdown in blocks that mean the same apart, so that a growing text is rendered again only at its end. Pure.

/** A fence of code: its mark and length, and its first line. */
interface Fence {
  mark: string;
  length: number;
  line: string;
}

const LIST = /^(?:[-*+]|\d{1,9}[.)])(?:\s|$)/;
/** The length from which on code that grows, or a list, is continued in another block. */
const LONG = 4000;
/** The length up to which blocks are one: each costs the parser, the sanitiser and the browser time. */
const SHORTEST = 2000;
/** The blocks that are compared and laid out as one part: their number, and their length together. */
const PART_BLOCKS = 40;
const PART_LENGTH = 4000;
/** A line may still become a list or a fence while it has fewer characters. */
const CLEAR = 12;

/** A block that ends within code, which the next one goes on with: the lengths of what was added to these. */
interface Cut {
  at: number;
  end: number;
  lead: number;
}

/**
 * Splits a text that grows. Blocks end at a blank line before a line that begins at the margin, outside of code, and
 * that does not go on with a list, unless that is long.
 */
export class Blocks {
  /** The blocks that no longer change, until `finish`. */
  done: string[] = [];
  /** The blocks with which parts begin. */
  readonly parts: number[] = [];
  private text = "";
  /** Where the last block begins, where it could end, and the line that is read next. */
  private begin = 0;
  private boundary = 0;
  private at = 0;
  private fence: Fence | null = null;
  private isBlank = false;
  private isList = false;
  private cuts: Cut[] = [];
  /** The length of the last part. */
  private length = 0;
  /** The first line of the code that the last block goes on with. */
  private lead = "";

  /** A text that is still `growing` may have any continuation; its long code is cut, which costs some colours. */
  constructor(private growing: boolean, private readonly shortest = SHORTEST) {}

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
        if (!/^\s/.test(line) && (!(this.isList && isList) || this.continuesAlone(line))) {
          this.boundary = this.at;
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
      if (this.growing && this.fence && !this.isList && this.at - this.begin > LONG) this.cutCode(this.fence);
    }
    // What has come together is in blocks of some length, and what follows in others: only the last one is rendered again.
    if (this.growing && this.boundary > this.begin) this.cut(this.boundary);
    return true;
  }

  /** The text is complete: code that was cut is one block again, and the others stay. */
  finish(): void {
    this.growing = false;
    if (this.cuts.length === 0) return;
    const done = [...this.done];
    for (const { at, end, lead } of this.cuts.reverse()) {
      const next = at + 1 < done.length ? done[at + 1]! : this.last;
      done[at] = done[at]!.slice(0, done[at]!.length - end) + next.slice(lead);
      if (at + 1 < done.length) done[at + 1] = "";
      else [this.begin, this.lead] = [this.text.length, ""];
    }
    this.cuts = [];
    this.done = done;
  }

  /** The block that may still grow; empty if there is none. */
  get last(): string {
    return this.begin < this.text.length ? this.lead + this.text.slice(this.begin) : "";
  }

  private cut(to = this.at, end = ""): void {
    const block = this.lead + this.text.slice(this.begin, to) + end;
    if (this.done.length === 0 || this.length + block.length > PART_LENGTH || this.done.length - this.parts.at(-1)! >= PART_BLOCKS) {
      this.parts.push(this.done.length);
      this.length = 0;
    }
    this.length += block.length;
    this.done.push(block);
    this.begin = to;
    this.lead = "";
  }

  private cutCode({ mark, length, line }: Fence): void {
    const [end, lead] = [`${mark.repeat(length)}\n`, `${line}\n`];
    this.cuts.push({ at: this.done.length, end: end.length, lead: lead.length });
    this.cut(this.at, end);
    this.lead = lead;
  }

  /** Return whether a long list may go on in another block: its numbers are not counted anew there. */
  private continuesAlone(line: string): boolean {
    const number = /^\d+/.exec(line)?.[0];
    return this.at - this.begin > LONG && (number === undefined || Number(number) > 1);
  }

  private endLine(line: string): void {
    const mark = /^\s*(`{3,}|~{3,})(.*)$/.exec(line);
    if (this.fence) {
      if (mark && mark[1]![0] === this.fence.mark && mark[1]!.length >= this.fence.length && mark[2]!.trim() === "") this.fence = null;
    } else if (mark && !(mark[1]![0] === "`" && mark[2]!.includes("`"))) this.fence = { mark: mark[1]![0]!, length: mark[1]!.length, line };
    this.isBlank = line.trim() === "";
  }
}

/** Return the definitions of links in a text, which may be far from where they are used, by their labels. */
export function definitionsOf(text: string): ReadonlyMap<string, string> {
  const found = new Map<string, string>();
  for (const [line, label] of text.matchAll(/^ {0,3}\[([^\]\n]{1,200})\]:.*$/gm)) if (!found.has(label!.toLowerCase())) found.set(label!.toLowerCase(), line);
  return found;
}

/** Return a block with the definitions that it uses. */
export function withDefinitions(block: string, definitions: ReadonlyMap<string, string>): string {
  if (definitions.size === 0) return block;
  const used = new Set<string>();
  for (const [, label] of block.matchAll(/\[([^\]\n]{1,200})\]/g)) {
    const definition = definitions.get(label!.toLowerCase());
    if (definition !== undefined) used.add(definition);
  }
  // Before the block: it may end within code.
  return used.size > 0 ? `${[...used].join("\n")}\n\n${block}` : block;
}
