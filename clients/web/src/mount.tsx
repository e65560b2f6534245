// The page in a document, over a connection that its host has made.

import { render } from "preact";
// Before the styles of all views, which have those of narrow windows at their end.
import "./reading.css";
import "./style.css";
import "./trace.css";
import "uplot/dist/uPlot.min.css";
import { HostContext, type Connection, type Host } from "./host.ts";
import type { Store } from "./store.ts";
import { App } from "./views/app.tsx";

export function mount(store: Store, connection: Connection, host: Host, root: HTMLElement): void {
  render(<HostContext.Provider value={host}><App store={store} connection={connection} /></HostContext.Provider>, root);
}
