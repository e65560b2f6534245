// JSON-RPC between the pages and the one connection to the server. The extension is the client: pages speak through it.

import type { Rpc } from "../../web/src/rpc.ts";
import { RpcError } from "../../web/src/rpc.ts";

export interface Page {
  receive(text: string): void;
}

/** Complete or refuse a request of a page; a thrown error is its answer. */
export type Adapt = (method: string, params: Record<string, unknown>) => Record<string, unknown>;

const INVALID_REQUEST = -32600;

export class Relay {
  private readonly pages = new Set<Page>();

  constructor(private readonly rpc: Rpc, private readonly adapt: Adapt) {}

  add(page: Page): void {
    this.pages.add(page);
  }

  remove(page: Page): void {
    this.pages.delete(page);
  }

  /** Pass on a message of a page; the answer goes to that page alone. */
  async receive(page: Page, text: string): Promise<void> {
    const { id, method, params } = JSON.parse(text) as { id?: unknown; method?: string; params?: Record<string, unknown> };
    // Pages have nothing to say but requests: requests of the server are answered by the methods of their session.
    if (method === undefined || id === undefined) return;
    let answer: Record<string, unknown>;
    try {
      answer = { result: await this.rpc.call(method as never, this.adapt(method, params ?? {}) as never) };
    } catch (error) {
      const isOfServer = error instanceof RpcError;
      answer = { error: { code: isOfServer ? error.code : INVALID_REQUEST, message: error instanceof Error ? error.message : String(error), ...(isOfServer && error.data ? { data: error.data } : {}) } };
    }
    if (this.pages.has(page)) page.receive(JSON.stringify({ jsonrpc: "2.0", id, ...answer }));
  }

  /** Pass on a notification of the server to all pages. */
  notify(method: string, params: unknown): void {
    const text = JSON.stringify({ jsonrpc: "2.0", method, params });
    for (const page of this.pages) page.receive(text);
  }
}
