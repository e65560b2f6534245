// The page in a browser: its connection, its state and its views.

import { browserHost } from "./host.ts";
import { mount } from "./mount.tsx";
import { followAddress } from "./route.ts";
import { Rpc } from "./rpc.ts";
import { SocketConnection, takePass } from "./socket.ts";
import { Store } from "./store.ts";
import { followTheme } from "./theme.ts";

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
mount(store, connection, browserHost, document.getElementById("app")!);
connection.start();
connection.watch();
