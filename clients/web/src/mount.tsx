// The page in a document, over a connection that its host has made.

import { render } from "preact";
import { HostContext, type Connection, type Host } from "./host.ts";
import type { Store } from "./store.ts";
import { App } from "./views/app.tsx";

export function mount(store: Store, connection: Connection, host: Host, root: HTMLElement): void {
  render(<HostContext.Provider value={host}><App store={store} connection={connection} /></HostContext.Provider>, root);
}
