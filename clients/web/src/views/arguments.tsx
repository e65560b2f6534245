// The arguments of a call, as what they are; those of MCP servers, whose meaning is not known, as JSON.

import { useMemo } from "preact/hooks";
import { languageOf, renderCode } from "../markdown.ts";
import { shownArguments } from "../state/arguments.ts";
import { toolText } from "../state/calls.ts";
import type { CallRow } from "../state/types.ts";
import { Copy, Html } from "./common.tsx";
import { Diff } from "./diff.tsx";

/** What the head of the call says already is left out. */
export function Arguments({ row, folder }: { row: CallRow; folder: string }) {
  const { tool, args } = row;
  const shown = useMemo(() => (row.server === null ? shownArguments(tool, args) : null), [row.server, tool, args]);
  if (shown === null) return <Code label="Arguments" text={JSON.stringify(args, null, 2)} language="json" />;
  const head = toolText(args, row.intention);
  return (
    <>
      {shown.map((one, at) => {
        switch (one.kind) {
          case "change": return <Diff key={at} text={one.diff} folder={folder} isPlaced={false} />;
          case "text": return <Code key={at} label={one.name.replaceAll("_", " ")} text={one.text} language={one.path ? languageOf(one.path) : one.language} />;
          case "values": return <dl key={at} class="values">{one.values.filter(([, value]) => value !== head).map(([name, value]) => <div key={name}><dt>{name.replaceAll("_", " ")}</dt><dd>{value}</dd></div>)}</dl>;
        }
      })}
    </>
  );
}

export function Code({ label, text, language }: { label: string; text: string; language: string }) {
  const html = useMemo(() => renderCode(text, language), [text, language]);
  return <div class="copyable"><pre class="code" tabIndex={0} role="group" aria-label={label}><Html as="code" html={html} /></pre><Copy text={text} what={label.toLowerCase()} /></div>;
}
