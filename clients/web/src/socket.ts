// The connection of the page in a browser: a WebSocket to its own origin, opened again after it has ended.

import { Connection } from "./host.ts";
import { Rpc, RpcError } from "./rpc.ts";

const TOKEN = "jumpseat.token";
const FIRST_DELAY_MS = 250;
const LONGEST_DELAY_MS = 5000;

/** Return the pass in the address, and remove it from the address and the history. */
export function takePass(place: Location, past: History): string | null {
  const found = /^#(pass|token)=(.+)$/.exec(place.hash);
  if (!found) return null;
  past.replaceState(null, "", place.pathname);
  return decodeURIComponent(found[2]!);
}

export class SocketConnection extends Connection {
  onOpen: () => void = () => undefined;
  private delayMs = FIRST_DELAY_MS;

  constructor(readonly rpc: Rpc, private pass: string | null) {
    super();
  }

  start(): void {
    const socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/rpc`);
    socket.onopen = () => {
      this.rpc.attach({ send: (message) => socket.send(message), close: () => socket.close() });
      void this.shakeHands(socket);
    };
    socket.onmessage = (message) => this.rpc.receive(String(message.data));
    socket.onclose = () => {
      this.rpc.detach();
      if (this.link.value === "locked") return;
      this.link.value = "lost";
      setTimeout(() => this.start(), this.delayMs);
      this.delayMs = Math.min(this.delayMs * 2, LONGEST_DELAY_MS);
    };
  }

  /** Connect with a token that a person has typed. */
  override unlock(token: string): void {
    this.pass = token.trim();
    this.link.value = "connecting";
    this.start();
  }

  private async shakeHands(socket: WebSocket): Promise<void> {
    const token = this.pass ?? sessionStorage.getItem(TOKEN);
    try {
      const result = await this.rpc.call("connect", token ? { token } : {});
      this.version.value = String((result as any).version ?? "");
      if (token && (this.pass || !sessionStorage.getItem(TOKEN))) await this.keepLogin(token);
      this.pass = null;
      this.delayMs = FIRST_DELAY_MS;
      this.problem.value = "";
      this.link.value = "open";
      this.onOpen();
    } catch (error) {
      if (error instanceof RpcError && error.code !== 0) {
        this.problem.value = token ? "This token or address is not valid (any more)." : "";
        this.pass = null;
        sessionStorage.removeItem(TOKEN);
        this.link.value = "locked";
      }
      socket.close();
    }
  }

  /** Keep a login for this tab, which also connects to a server that is started again. */
  private async keepLogin(token: string): Promise<void> {
    try {
      const login = await this.rpc.call("jumpseat.web.login", {});
      sessionStorage.setItem(TOKEN, login.token);
    } catch {
      // A token without the right `all` gets no login, but can be used again itself.
      if (!token.startsWith("pass-")) sessionStorage.setItem(TOKEN, token);
    }
  }
}
