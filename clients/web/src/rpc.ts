// JSON-RPC over any transport that carries whole messages, and the record of all messages for the view of the wire.

import type { Methods } from "./generated/wire.ts";

export interface Transport {
  send(message: string): void;
  close(): void;
}

export interface Message {
  number: number;
  time: number;
  sent: boolean;
  method: string;
  /** The kind of message: a request, a response or error to one, or a notification. */
  kind: "request" | "response" | "error" | "notification";
  id: number | string | null;
  sessionId: string | null;
  bytes: number;
  body: any;
}

export class RpcError extends Error {
  constructor(message: string, readonly code: number, readonly data: unknown) {
    super(message);
  }
}

interface Waiting {
  method: string;
  resolve: (result: any) => void;
  reject: (error: Error) => void;
}

/** The data of an error for a request that was never sent. */
export const UNSENT = "unsent";
const MOST_MESSAGES = 5000;
/** Requests of the server that a person answers through a method of their session, until they are withdrawn. */
const ANSWERED_ELSEWHERE = new Set(["userInput.request", "exitPlanMode.request", "autoModeSwitch.request"]);

export class Rpc {
  onNotification: (method: string, params: any) => void = () => undefined;
  onMessage: () => void = () => undefined;
  messages: Message[] = [];
  private transport: Transport | null = null;
  private lastId = 0;
  private lastNumber = 0;
  private readonly waiting = new Map<number, Waiting>();
  /** When the last message came, in milliseconds since the epoch. */
  heardAt = 0;

  /** `most` is the number of messages that are kept for the view of the wire; the oldest are dropped. */
  constructor(private readonly most = MOST_MESSAGES) {}

  attach(transport: Transport): void {
    this.transport = transport;
  }

  /** Fail all open requests: the connection has ended. */
  detach(): void {
    this.transport = null;
    const waiting = [...this.waiting.values()];
    this.waiting.clear();
    for (const one of waiting) one.reject(new RpcError("the connection to the server has ended", 0, null));
  }

  call<M extends keyof Methods>(method: M, params: Methods[M]["params"]): Promise<Methods[M]["result"]> {
    return new Promise((resolve, reject) => {
      if (!this.transport) {
        reject(new RpcError("not connected to the server: nothing was sent", 0, UNSENT));
        return;
      }
      const id = ++this.lastId;
      this.waiting.set(id, { method, resolve, reject });
      this.send({ jsonrpc: "2.0", id, method, params: params ?? {} });
    });
  }

  receive(text: string): void {
    this.heardAt = Date.now();
    let body: any;
    try {
      body = JSON.parse(text);
    } catch {
      return;
    }
    if (body.method === undefined) {
      const waiting = this.waiting.get(body.id);
      this.record(false, text.length, body, waiting?.method ?? "");
      if (!waiting) return;
      this.waiting.delete(body.id);
      if (body.error) waiting.reject(new RpcError(body.error.message, body.error.code, body.error.data));
      else waiting.resolve(body.result);
      return;
    }
    this.record(false, text.length, body, body.method);
    if (body.id === undefined) {
      if (body.method === "$/cancelRequest") {
        this.send({ jsonrpc: "2.0", id: body.params?.id, error: { code: -32800, message: "cancelled" } });
      } else this.onNotification(body.method, body.params);
    } else if (!ANSWERED_ELSEWHERE.has(body.method)) {
      this.send({ jsonrpc: "2.0", id: body.id, error: { code: -32601, message: `the page does not serve ${body.method}` } });
    }
  }

  private send(body: any): void {
    const text = JSON.stringify(body);
    // The token must not be on the screen.
    const shown = body.method === "connect" ? { ...body, params: { ...body.params, token: "[redacted]" } } : body;
    this.record(true, text.length, shown, body.method ?? "");
    this.transport?.send(text);
  }

  private record(sent: boolean, bytes: number, body: any, method: string): void {
    // Pings would push everything else out.
    if (this.most === 0 || method === "ping") return;
    // Nor may the key of the login.
    if (method === "jumpseat.web.login" && body.result) body = { ...body, result: { ...body.result, key: "[redacted]" } };
    const kind = body.method === undefined ? (body.error ? "error" : "response") : body.id === undefined ? "notification" : "request";
    this.messages.push({
      number: ++this.lastNumber, time: Date.now(), sent, method, kind, id: body.id ?? null, bytes, body,
      sessionId: body.params?.sessionId ?? body.result?.sessionId ?? null,
    });
    if (this.messages.length > this.most) this.messages = this.messages.slice(Math.floor(this.most / 10) - this.most);
    this.onMessage();
  }
}
