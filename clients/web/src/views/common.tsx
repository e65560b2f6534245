// Small parts that several views share.

import { signal } from "@preact/signals";
import { Component, type ComponentChildren } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { whenIdle } from "../host.ts";
import type { SafeHtml } from "../markdown.ts";
import { clock } from "../state/format.ts";
import { SETTLE_MS } from "../state/settling.ts";

const PATHS: Record<string, string> = {
  menu: "M4 6h16M4 12h16M4 18h16",
  plus: "M12 5v14M5 12h14",
  send: "M5 12h14M13 6l6 6-6 6",
  stop: "M7 7h10v10H7z",
  clip: "M20 11l-8.5 8.5a5 5 0 0 1-7-7L13 4a3.5 3.5 0 0 1 5 5l-8.5 8.5a2 2 0 0 1-3-3L14 7",
  check: "M5 12.5l4.5 4.5L19 7.5",
  cross: "M6 6l12 12M18 6L6 18",
  chevron: "M9 6l6 6-6 6",
  more: "M5 12h.01M12 12h.01M19 12h.01",
  wire: "M8 7l-5 5 5 5M16 7l5 5-5 5",
  fork: "M7 5v6a4 4 0 0 0 4 4h6M7 5v14M14 11l4 4-4 4",
  back: "M9 7l-5 5 5 5M4 12h10a6 6 0 0 1 0 12",
  tool: "M14.5 6.5a4 4 0 0 1 5-1l-2.6 2.6 1 2 2 1L22 8.5a4 4 0 0 1-5.5 5L9 21l-3-3 7.5-7.5a4 4 0 0 1 1-4z",
  clock: "M12 7v5l3 2M21 12a9 9 0 1 1-18 0 9 9 0 0 1 18 0z",
  search: "M20 20l-4.5-4.5M18 11a7 7 0 1 1-14 0 7 7 0 0 1 14 0z",
  warning: "M12 4l9 16H3zM12 10v4M12 17h.01",
  robot: "M6 9h12v9H6zM12 5v4M9.5 13h.01M14.5 13h.01M3 12v3M21 12v3",
};

export function Icon({ name, size = 16 }: { name: string; size?: number }) {
  return (
    <svg class="icon" width={size} height={size} viewBox="0 0 24 24" fill="none" stroke="currentColor" stroke-width="2" stroke-linecap="round" stroke-linejoin="round" aria-hidden="true">
      <path d={PATHS[name] ?? ""} />
    </svg>
  );
}

/** Whether the page may write times: rows do not wait for the first one. */
const canWriteTimes = signal(false);

/** Return whether times can be written yet. */
export function useClock(): boolean {
  useEffect(() => {
    if (!canWriteTimes.peek()) whenIdle(() => { canWriteTimes.value = true; });
  }, []);
  return canWriteTimes.value;
}

/** The time of the day. */
export function Clock({ at }: { at: number }) {
  return <time>{useClock() ? clock(at) : ""}</time>;
}

/** Sanitised markup; only markdown.ts makes it. */
export function Html({ html, as: Tag = "div", class: name }: { html: SafeHtml; as?: "div" | "code" | "span"; class?: string }) {
  const ref = useRef<HTMLElement>(null);
  useLayoutEffect(() => {
    if (ref.current) ref.current.innerHTML = html.__html;
  }, [html]);
  return <Tag ref={ref as any} class={name} />;
}

/** Shows a note in place of a part of the page that cannot be shown, so that the rest of the page goes on. */
export class Boundary extends Component<{ what: string; children: ComponentChildren; onFailed?: () => void }, { failed: boolean }> {
  override state = { failed: false };

  static override getDerivedStateFromError(): { failed: boolean } {
    return { failed: true };
  }

  override componentDidCatch(error: unknown): void {
    console.error(`cannot show ${this.props.what}`, error);
    this.props.onFailed?.();
  }

  override render(): ComponentChildren {
    return this.state.failed ? <p class="row note error" role="alert">The page cannot show {this.props.what}.</p> : this.props.children;
  }
}

/** The controls of a question, which take no answer before a person can have seen it, and none of a double click. */
export function Settled({ children, class: name }: { children: ComponentChildren; class?: string }) {
  const [ready, setReady] = useState(false);
  useEffect(() => {
    let timer: ReturnType<typeof setTimeout> | undefined;
    const begin = (): void => {
      clearTimeout(timer);
      setReady(false);
      if (!document.hidden) timer = setTimeout(() => setReady(true), SETTLE_MS);
    };
    // A click into a frame gives it the focus: it was in sight, and the click is meant for it. A window that gets the
    // focus may have been behind another one, which closed under the first click of a double click.
    const focused = (): void => {
      if (!pressed) begin();
    };
    let pressed = false;
    const press = (): void => { pressed = true; };
    const release = (): void => { pressed = false; };
    begin();
    // The question may have come while the tab was in the background.
    document.addEventListener("visibilitychange", begin);
    window.addEventListener("focus", focused);
    const pointer: readonly (readonly [string, () => void])[] = [["pointerdown", press], ["pointerup", release], ["pointercancel", release]];
    for (const [event, note] of pointer) window.addEventListener(event, note, true);
    return () => {
      clearTimeout(timer);
      document.removeEventListener("visibilitychange", begin);
      window.removeEventListener("focus", focused);
      for (const [event, note] of pointer) window.removeEventListener(event, note, true);
    };
  }, []);
  const refuse = (event: MouseEvent): void => {
    // A key press counts 0 clicks.
    if (event.detail > 1 && event.target instanceof Element && event.target.closest("button")) {
      event.preventDefault();
      event.stopPropagation();
    }
  };
  return <fieldset class={name ? `settled ${name}` : "settled"} disabled={!ready} onClickCapture={refuse}>{children}</fieldset>;
}

/** A table that scrolls sideways where it is wider than its place. */
export function Table({ label, children, class: name }: { label: string; children: ComponentChildren; class?: string }) {
  return <div class="table-scroll" tabIndex={0} role="region" aria-label={label}><table class={name}>{children}</table></div>;
}

/** A menu behind a button, closed by Escape, by a click elsewhere, and by a choice. */
export function Menu({ label, icon, children }: { label: string; icon: string; children: ComponentChildren }) {
  const [open, setOpen] = useState(false);
  const ref = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (!open) return;
    const items = (): HTMLElement[] => [...(ref.current?.querySelectorAll<HTMLElement>("[role=menuitem]") ?? [])];
    items()[0]?.focus();
    const close = (event: Event): void => {
      if (!ref.current?.contains(event.target as Node)) setOpen(false);
    };
    const key = (event: KeyboardEvent): void => {
      if (event.key === "Escape") {
        setOpen(false);
        ref.current?.querySelector("button")?.focus();
      }
      if (event.key !== "ArrowDown" && event.key !== "ArrowUp") return;
      event.preventDefault();
      const all = items();
      const at = all.indexOf(document.activeElement as HTMLElement);
      all[(at + (event.key === "ArrowDown" ? 1 : -1) + all.length) % all.length]?.focus();
    };
    addEventListener("pointerdown", close);
    addEventListener("keydown", key);
    return () => {
      removeEventListener("pointerdown", close);
      removeEventListener("keydown", key);
    };
  }, [open]);
  return (
    <div class="menu" ref={ref}>
      <button type="button" class="quiet" aria-haspopup="menu" aria-expanded={open} aria-label={label} title={label} onClick={() => setOpen(!open)}>
        <Icon name={icon} />
      </button>
      {open && <div class="menu-list" role="menu" aria-label={label} onClick={() => setOpen(false)}>{children}</div>}
    </div>
  );
}

export function MenuItem({ onClick, children }: { onClick: () => void; children: ComponentChildren }) {
  return <button type="button" role="menuitem" tabIndex={-1} onClick={onClick}>{children}</button>;
}

export function Copy({ text, what }: { text: string; what: string }) {
  return <button type="button" class="copy" aria-label={`Copy ${what}`} onClick={(event) => void copy(text, event.currentTarget)}>Copy</button>;
}

export async function copy(text: string, button: HTMLElement): Promise<void> {
  try {
    await navigator.clipboard.writeText(text);
    button.textContent = "Copied";
  } catch {
    button.textContent = "Not allowed";
  }
  setTimeout(() => { button.textContent = "Copy"; }, 1500);
}
