// The arguments of a call, as what they are.

import { useMemo } from "preact/hooks";
import { languageOf, renderCode } from "../markdown.ts";
import { shownArguments } from "../state/arguments.ts";
import { Copy, Html } from "./common.tsx";
import { Diff } from "./diff.tsx";

export function Arguments({ tool, args, folder }: { tool: string; args: unknown; folder: string }) {
  const shown = useMemo(() => shownArguments(tool, args), [tool, args]);
  if (shown === null) return <Code label="Arguments" text={JSON.stringify(args, null, 2)} language="json" />;
  return (
    <>
      {shown.map((one, at) => {
        switch (one.kind) {
          case "change": return <Diff key={at} text={one.diff} folder={folder} isPlaced={false} />;
          case "text": return <Code key={at} label={one.name.replaceAll("_", " ")} text={one.text} language={one.path ? languageOf(one.path) : one.language} />;
          case "values": return <dl key={at} class="values">{one.values.map(([name, value]) => <div key={name}><dt>{name.replaceAll("_", " ")}</dt><dd>{value}</dd></div>)}</dl>;
        }
      })}
    </>
  );
}

export function Code({ label, text, language }: { label: string; text: string; language: string }) {
  const html = useMemo(() => renderCode(text, language), [text, language]);
  return <div class="copyable"><pre class="code" tabIndex={0} role="group" aria-label={label}><Html as="code" html={html} /></pre><Copy text={text} what={label.toLowerCase()} /></div>;
}
