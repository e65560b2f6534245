// Answers as Markdown: a growing one is rendered again only at its end, and a very long one is shown in parts.

import { Component, type ComponentChildren } from "preact";
import { useEffect, useMemo, useReducer, useRef } from "preact/hooks";
import { renderMarkdown } from "../markdown.ts";
import { Blocks, definitionsOf, withDefinitions } from "../state/blocks.ts";
import { LONGEST_TEXT } from "../state/costly.ts";
import { Html } from "./common.tsx";
import { LongText } from "./folded.tsx";

/** The share of its time that the page spends on the last block of a growing text. */
const SHARE = 5;

/** The longest time that counts for it, in milliseconds. */
const LONGEST_MS = 1000;

/** The characters that are rendered at once. */
const SLICE = 6000;
/** The number of parts from which on those out of sight are not laid out. */
const MANY = 3;
const NONE: ReadonlyMap<string, string> = new Map();

export function Markdown({ text, streaming, id }: { text: string; streaming: boolean; id: string }) {
  const name = streaming ? "markdown streaming" : "markdown";
  if (text.length > LONGEST_TEXT) return <div class={name} dir="auto"><LongText text={text} id={id} streaming={streaming} /></div>;
  return <InBlocks text={text} streaming={streaming} name={name} />;
}

function InBlocks({ text, streaming, name }: { text: string; streaming: boolean; name: string }) {
  const blocks = useRef(new Blocks(streaming));
  const rendered = useRef(0);
  const version = useRef(0);
  const [, update] = useReducer((times: number) => times + 1, 0);
  const definitions = useMemo(() => (streaming ? NONE : definitionsOf(text)), [streaming, text]);
  if (!blocks.current.read(text)) {
    blocks.current = new Blocks(streaming);
    blocks.current.read(text);
    rendered.current = 0;
    version.current += 1;
  }
  if (!streaming) blocks.current.finish();
  const { done, last, parts } = blocks.current;
  // A long answer is rendered in parts, so that keys and clicks come between.
  for (let left = SLICE; rendered.current < done.length && left > 0; rendered.current++) left -= done[rendered.current]!.length;
  const shown = rendered.current;
  const isComplete = shown >= done.length;
  useEffect(() => {
    if (isComplete) return;
    const timer = setTimeout(() => update(undefined as never));
    return () => clearTimeout(timer);
  });
  return (
    <div class={parts.length >= MANY ? `${name} many` : name} dir="auto">
      {parts.map((from, at) => from < shown && <Part key={`${version.current} ${from}`} blocks={done} from={from} to={Math.min(shown, parts[at + 1] ?? shown)} definitions={definitions} />)}
      {isComplete && last !== "" && <Growing key={`${version.current} last ${done.length}`} text={withDefinitions(last, definitions)} streaming={streaming} />}
    </div>
  );
}

interface PartProps {
  blocks: readonly string[];
  from: number;
  to: number;
  definitions: ReadonlyMap<string, string>;
}

/** Neighbouring blocks. They do not change while the answer grows, but further ones come to the last part. */
class Part extends Component<PartProps> {
  override shouldComponentUpdate(next: PartProps): boolean {
    return next.to !== this.props.to || next.blocks !== this.props.blocks || next.definitions !== this.props.definitions;
  }

  override render(): ComponentChildren {
    const { blocks, from, to, definitions } = this.props;
    return <div class="part">{blocks.slice(from, to).map((block, at) => <Block key={at} text={withDefinitions(block, definitions)} />)}</div>;
  }
}

/** A block that stays the same is not rendered again. */
class Block extends Component<{ text: string }> {
  override shouldComponentUpdate(next: { text: string }): boolean {
    return next.text !== this.props.text;
  }

  override render(): ComponentChildren {
    return <Html html={renderMarkdown(this.props.text)} />;
  }
}

/** The last block, which is rendered less often the longer that takes. */
function Growing({ text, streaming }: { text: string; streaming: boolean }) {
  const [, update] = useReducer((times: number) => times + 1, 0);
  const shown = useRef(text);
  const due = useRef(0);
  const begun = performance.now();
  const isDue = !streaming || begun >= due.current;
  if (isDue) shown.current = text;
  useEffect(() => {
    if (isDue) {
      const now = performance.now();
      due.current = now + SHARE * Math.min(LONGEST_MS, now - begun);
    }
    if (shown.current === text) return;
    const timer = setTimeout(() => update(undefined as never), due.current - performance.now());
    return () => clearTimeout(timer);
  });
  return <Block text={shown.current} />;
}
