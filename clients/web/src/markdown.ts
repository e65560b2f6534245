// Markdown and code as sanitised HTML. Nothing of a model, a tool or a file becomes markup that runs or loads anything.

import DOMPurify, { type Config } from "dompurify";
import { whenIdle } from "./host.ts";
import { Marked, type Tokens } from "marked";
import { isCostly } from "./state/costly.ts";

/** The characters from which on code is not highlighted, because that would take too long. */
const LONGEST_CODE = 50_000;

const ALLOWED = {
  ALLOWED_TAGS: [
    "p", "br", "hr", "h1", "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "blockquote", "pre", "code", "em", "strong",
    "del", "a", "table", "thead", "tbody", "tr", "th", "td", "span", "input", "sup", "sub", "kbd",
  ],
  ALLOWED_ATTR: ["href", "title", "class", "type", "checked", "disabled", "align", "start", "target", "rel", "tabindex"],
  ALLOWED_URI_REGEXP: /^(?:https?|mailto):/i,
  ADD_URI_SAFE_ATTR: ["type", "checked", "disabled", "align", "start", "target", "rel", "tabindex"],
  ALLOW_DATA_ATTR: false,
  ALLOW_ARIA_ATTR: false,
  RETURN_TRUSTED_TYPE: true,
} satisfies Config;

const purifier = DOMPurify;
purifier.addHook("afterSanitizeAttributes", (node) => {
  if (node.nodeName === "A") {
    node.setAttribute("target", "_blank");
    node.setAttribute("rel", "noopener noreferrer");
    tellTarget(node);
  }
  if (node.nodeName === "INPUT" && node.getAttribute("type") !== "checkbox") node.remove();
  // Only classes of the highlighter, so that no content can look like a part of the page.
  const classes = node.getAttribute("class");
  if (classes !== null) {
    const kept = classes.split(/\s+/).filter((name) => /^(hljs[\w-]*|language-[\w+#-]+|remote)$/.test(name) || /^(function_|class_|inherited__|title|section)$/.test(name));
    if (kept.length > 0) node.setAttribute("class", kept.join(" "));
    else node.removeAttribute("class");
  }
});

/** Say where a link leads if its words say something else, or if letters of the name only look like others. */
function tellTarget(link: Element): void {
  const host = hostOf(link.getAttribute("href") ?? "");
  const shown = /^\s*((?:https?:\/\/|www\.)\S+)/i.exec(link.textContent ?? "")?.[1] ?? "";
  const said = hostOf(shown.startsWith("http") ? shown : `https://${shown}`);
  if (host && ((shown && said !== host) || /(^|\.)xn--/.test(host))) link.append(` (${host})`);
}

function hostOf(address: string): string {
  try {
    return new URL(address).host;
  } catch {
    return "";
  }
}

const marked = new Marked({
  gfm: true,
  breaks: false,
  renderer: {
    // Markup in Markdown is shown as text.
    html: ({ text }: Tokens.HTML | Tokens.Tag) => escape(text),
    // Pictures are links: loading one would tell its server that, and when, somebody reads this.
    image: ({ href, text }: Tokens.Image) => `<a class="remote" href="${escape(href)}" title="${escape(href)}">picture: ${escape(text || href)}</a>`,
    // Long lines scroll, also with the keyboard.
    code: ({ text, lang }: Tokens.Code) => `<pre tabindex="0"><code class="hljs">${highlight(text, (lang ?? "").split(/\s/)[0]!)}</code></pre>`,
  },
});

export type SafeHtml = { __html: string };

/** Return Markdown as HTML that can be shown; as plain text if it would take too long, or fails. */
export function renderMarkdown(text: string): SafeHtml {
  if (!isCostly(text)) {
    try {
      return clean(marked.parse(text, { async: false }));
    } catch (error) {
      // The parser is recursive: nesting that isCostly does not see exceeds the stack.
      console.warn("Markdown is shown as text", error);
    }
  }
  return clean(`<pre tabindex="0"><code>${escape(text)}</code></pre>`);
}

/** Return code with colours as HTML that can be shown. */
export function renderCode(text: string, language: string): SafeHtml {
  return clean(highlight(text, language));
}

/** Return the language of a file by its name; empty if unknown. */
export function languageOf(path: string): string {
  const ending = /\.([A-Za-z0-9]+)$/.exec(path)?.[1]?.toLowerCase() ?? "";
  const known: Record<string, string> = {
    py: "python", js: "javascript", mjs: "javascript", jsx: "javascript", ts: "typescript", tsx: "typescript", sh: "bash",
    md: "markdown", rs: "rust", yml: "yaml", yaml: "yaml", h: "cpp", c: "cpp", cc: "cpp", hpp: "cpp", html: "xml", svg: "xml",
    go: "go", java: "java", json: "json", css: "css", sql: "sql", xml: "xml", toml: "yaml", cpp: "cpp",
  };
  return known[ending] ?? "";
}

/** The highlighter, which is loaded when the first code was shown without its colours. */
let colours: typeof import("./colours.ts") | null = null;
let isLoading = false;

function highlight(text: string, language: string): string {
  if (!language || text.length > LONGEST_CODE) return escape(text);
  if (colours !== null) return colours.highlight(text, language) ?? escape(text);
  if (!isLoading) {
    isLoading = true;
    whenIdle(() => void import("./colours.ts").then(colourAll, () => { isLoading = false; }));
  }
  return `<span class="language-${escape(language)}">${escape(text)}</span>`;
}

/** Colour the code that is shown already. */
function colourAll(loaded: typeof import("./colours.ts")): void {
  colours = loaded;
  for (const place of document.querySelectorAll<HTMLElement>("code span[class^=language-]")) {
    place.innerHTML = clean(highlight(place.textContent ?? "", place.className.replace("language-", ""))).__html;
    place.removeAttribute("class");
  }
}

function clean(html: string): SafeHtml {
  return { __html: purifier.sanitize(html, ALLOWED) as unknown as string };
}

export function escape(text: string): string {
  return text.replace(/[&<>"']/g, (character) => `&#${character.charCodeAt(0)};`);
}
