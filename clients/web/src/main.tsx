// The page in a browser: its connection, its state and its views.

import { render } from "preact";
import "./style.css";
import "uplot/dist/uPlot.min.css";
import { follow } from "./route.ts";
import { Rpc } from "./rpc.ts";
import { Connection, takePass } from "./socket.ts";
import { Store } from "./store.ts";
import { App } from "./views/app.tsx";

const pass = takePass(location, history);
const rpc = new Rpc();
const connection = new Connection(rpc, pass);
const store = new Store(rpc);
connection.onOpen = () => void store.begin();
follow();
// An address with a pass that is opened in a tab with this page does not load the page again.
addEventListener("hashchange", () => {
  const later = takePass(location, history);
  if (later && connection.link.value === "locked") connection.unlock(later);
});
render(<App store={store} connection={connection} />, document.getElementById("app")!);
connection.start();
