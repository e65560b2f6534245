// The place in the page, written as the fragment of an address: "#/session/ID/timeline".

import { effect, signal } from "@preact/signals";

export const TABS = ["transcript", "changes", "timeline", "usage", "decisions", "wire"] as const;
export type Tab = (typeof TABS)[number];

export type Route =
  | { view: "home" }
  | { view: "new" }
  | { view: "setup" }
  | { view: "session"; id: string; tab: Tab; at: string | null }
  | { view: "compare"; left: string; right: string | null };

export const route = signal<Route>({ view: "home" });

export function parse(hash: string): Route {
  let parts: string[];
  try {
    parts = hash.replace(/^#\/?/, "").split("/").map(decodeURIComponent);
  } catch {
    // A damaged address, as when half of it was copied.
    return { view: "home" };
  }
  const [view, first, second, third] = parts;
  if (view === "session" && first) {
    return { view, id: first, tab: (TABS as readonly string[]).includes(second ?? "") ? (second as Tab) : "transcript", at: third ?? null };
  }
  if (view === "compare" && first) return { view, left: first, right: second || null };
  return view === "new" || view === "setup" ? { view } : { view: "home" };
}

export function href(to: Route): string {
  const parts = to.view === "session" ? ["session", to.id, to.tab, to.at] : to.view === "compare" ? ["compare", to.left, to.right] : to.view === "home" ? [] : [to.view];
  return `#/${parts.filter((part): part is string => part !== null && part !== undefined).map(encodeURIComponent).join("/")}`;
}

export function go(to: Route): void {
  route.value = to;
}

/** Keep the route and the address of the page the same, so that a browser goes back and forward. */
export function followAddress(): void {
  const read = (): void => {
    const to = parse(location.hash);
    if (href(to) !== href(route.value)) route.value = to;
  };
  addEventListener("hashchange", read);
  read();
  effect(() => {
    const hash = href(route.value);
    if (href(parse(location.hash)) !== hash) location.hash = hash;
  });
}

/** Begin at a kept place, and keep each later one. */
export function followPlace(kept: unknown, keep: (hash: string) => void): void {
  if (typeof kept === "string") route.value = parse(kept);
  effect(() => keep(href(route.value)));
}
