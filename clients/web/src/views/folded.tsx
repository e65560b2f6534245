// Texts that are too long to be shown at once.

import { signal } from "@preact/signals";
import { count } from "../state/format.ts";

/** The texts that a person has unfolded, by row, so that they stay so while the list scrolls. */
const unfolded = signal<ReadonlySet<string>>(new Set());
const MOST_LINES = 40;
const SHOWN_LINES = 15;
const MOST_CHARACTERS = 8000;
/** The parts of a long text of which a browser lays out only those in sight. */
const PART = 20_000;
const BEGINNING = 50_000;
const END = 3000;

function unfold(id: string): void {
  unfolded.value = new Set([...unfolded.value, id]);
}

/** The text of a prompt; folded if it is long, for example because a file was pasted. */
export function PromptText({ text, id }: { text: string; id: string }) {
  const isOpen = unfolded.value.has(id);
  if (isOpen) return <div class="prompt-text" dir="auto"><Parts text={text} /></div>;
  const beginning = beginningOf(text);
  return (
    <div class="prompt-text" dir="auto">{beginning}
      {beginning.length < text.length && <Unfold id={id} text={text} />}
    </div>
  );
}

/** The beginning of a text that is shown at first; all of it if it is short. */
export function beginningOf(text: string): string {
  let at = -1;
  let lines = 0;
  let shown = text.length;
  while (lines <= MOST_LINES && (at = text.indexOf("\n", at + 1)) >= 0) {
    lines += 1;
    if (lines === SHOWN_LINES) shown = at;
  }
  if (lines <= MOST_LINES) shown = text.length;
  return shown === text.length && text.length <= MOST_CHARACTERS ? text : text.slice(0, Math.min(shown, MOST_CHARACTERS / 2));
}

/** A very long answer, as it is: its beginning, and while it grows its end. */
export function LongText({ text, id, streaming }: { text: string; id: string; streaming: boolean }) {
  if (unfolded.value.has(id)) return <pre class="long-text"><Parts text={text} /></pre>;
  return (
    <>
      <pre class="long-text">{text.slice(0, BEGINNING)}</pre>
      <Unfold id={id} text={text} />
      {streaming && <pre class="long-text">{text.slice(-END)}</pre>}
    </>
  );
}

function Unfold({ id, text }: { id: string; text: string }) {
  let lines = 1;
  for (let at = text.indexOf("\n"); at >= 0; at = text.indexOf("\n", at + 1)) lines += 1;
  return <p><button type="button" class="unfold" onClick={() => unfold(id)}>Show all: {count(lines, "line")}, {count(Math.ceil(text.length / 1000), "thousand character")}</button></p>;
}

function Parts({ text }: { text: string }) {
  const parts: string[] = [];
  for (let at = 0; at < text.length;) {
    const line = text.indexOf("\n", at + PART);
    const end = line < 0 || line > at + 2 * PART ? at + PART : line + 1;
    parts.push(text.slice(at, end));
    at = end;
  }
  return <>{parts.map((part, at) => <span key={at} class="text-part">{part}</span>)}</>;
}
