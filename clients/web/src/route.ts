// The place in the page, in the fragment of the address: "#/session/ID/timeline".

import { signal } from "@preact/signals";

export const TABS = ["transcript", "timeline", "usage", "decisions", "wire"] as const;
export type Tab = (typeof TABS)[number];

export type Route =
  | { view: "home" }
  | { view: "new" }
  | { view: "session"; id: string; tab: Tab; at: string | null }
  | { view: "compare"; left: string; right: string | null };

export const route = signal<Route>({ view: "home" });

export function parse(hash: string): Route {
  const [view, first, second, third] = hash.replace(/^#\/?/, "").split("/").map(decodeURIComponent);
  if (view === "session" && first) {
    return { view, id: first, tab: (TABS as readonly string[]).includes(second ?? "") ? (second as Tab) : "transcript", at: third ?? null };
  }
  if (view === "compare" && first) return { view, left: first, right: second || null };
  return view === "new" ? { view: "new" } : { view: "home" };
}

export function href(to: Route): string {
  const parts = to.view === "session" ? ["session", to.id, to.tab, to.at] : to.view === "compare" ? ["compare", to.left, to.right] : to.view === "new" ? ["new"] : [];
  return `#/${parts.filter((part): part is string => part !== null && part !== undefined).map(encodeURIComponent).join("/")}`;
}

export function go(to: Route): void {
  location.hash = href(to);
}

export function follow(): void {
  const read = (): void => { route.value = parse(location.hash); };
  addEventListener("hashchange", read);
  read();
}
