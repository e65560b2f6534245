// The page in a browser: its connection, its state and its views.

import { effect } from "@preact/signals";
import { browserHost } from "./host.ts";
import { followAddress, route } from "./route.ts";
import { Rpc } from "./rpc.ts";
import { SocketConnection, takePass } from "./socket.ts";
import { Store } from "./store.ts";
import { followTheme } from "./theme.ts";
import "./stylesheets.ts";

/** The longest time for which the page stays empty while it connects. */
const EMPTY_MS = 200;

const pass = takePass(location, history);
const rpc = new Rpc();
const connection = new SocketConnection(rpc, pass);
const store = new Store(rpc);
connection.onOpen = () => void store.begin();
followTheme();
followAddress();
// An address with a pass that is opened in a tab with this page does not load the page again.
addEventListener("hashchange", () => {
  const later = takePass(location, history);
  if (later && connection.link.value === "locked") connection.unlock(later);
});
// The events of the shown session come while the browser reads the views.
if (route.value.view === "session") store.open(route.value.id);
connection.start();
connection.watch();
const root = document.getElementById("app")!;
import("./mount.tsx").then(
  async ({ mount }) => {
    await content();
    mount(store, connection, browserHost, root);
  },
  (error: unknown) => {
    console.error(error);
    root.textContent = "The page could not be loaded from its server. Reload it.";
  },
);

/** Wait for something to show, but not for long: to draw the page without it would take as much time once more. */
function content(): Promise<void> {
  const hasContent = (): boolean => {
    if (connection.link.value === "locked" || connection.link.value === "failed") return true;
    if (route.value.view !== "session") return store.listed.value;
    const { status, state } = store.open(route.value.id).value;
    return status !== "loading" || state.rows.length > 0;
  };
  return new Promise((resolve) => {
    const stop = effect(() => { if (hasContent()) resolve(); });
    setTimeout(() => {
      stop();
      resolve();
    }, EMPTY_MS);
  });
}
