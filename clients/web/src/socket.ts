// The connection of the page in a browser: a WebSocket to its own origin, opened again after it has ended.

import { Connection } from "./host.ts";
import { importLogin, keepLogin, keptLogin, prove, type Login } from "./login.ts";
import { Rpc, RpcError } from "./rpc.ts";

const FIRST_DELAY_MS = 250;
const LONGEST_DELAY_MS = 5000;
/** A silent connection is asked for a sign of life after a while, and given up if none comes: TCP takes minutes. */
const SILENT_MS = 3000;
const DEAD_MS = 5000;
const CHECK_MS = 500;
/** Hidden pages need not know so soon. */
const HIDDEN_SILENT_MS = 30_000;
/** The time after which the page no longer tries to connect by itself. */
const PATIENCE_MS = 10 * 60_000;

/** Return the pass in the address, and remove it from the address. */
export function takePass(place: Location, past: History): string | null {
  const found = /^#pass=(pass-[\w-]+)$/.exec(place.hash);
  if (!found) return null;
  past.replaceState(null, "", place.pathname);
  return found[1]!;
}

export class SocketConnection extends Connection {
  onOpen: () => void = () => undefined;
  private delayMs = FIRST_DELAY_MS;
  private login: Login | null = null;
  private lostAt = Date.now();
  /** Whether this page has spoken with a server that knew its login, or needed none. */
  private hasOpened = false;
  private socket: WebSocket | null = null;
  private askedAt = 0;

  /** `pass` is a secret that is sent once: a pass, or a token that a person has typed. */
  constructor(readonly rpc: Rpc, private pass: string | null) {
    super();
  }

  start(): void {
    void this.connect().catch(() => this.lose());
  }

  /** Notice within ten seconds that the other end has gone without a word, as after sleep or a change of the network. */
  watch(): void {
    setInterval(() => this.check(document.hidden ? HIDDEN_SILENT_MS : SILENT_MS), CHECK_MS);
    addEventListener("online", () => this.check(0));
    document.addEventListener("visibilitychange", () => { if (!document.hidden) this.check(0); });
  }

  private check(silentMs: number): void {
    if (this.link.value !== "open") return;
    const now = Date.now();
    if (this.askedAt > this.rpc.heardAt) {
      // What has arrived while the page was busy is read first.
      if (now - this.askedAt >= DEAD_MS) setTimeout(() => { if (this.askedAt > this.rpc.heardAt) this.giveUp(); });
    } else if (now - this.rpc.heardAt >= silentMs) {
      this.askedAt = now;
      void this.rpc.call("ping", {}).catch(() => undefined);
    }
  }

  private giveUp(): void {
    const { socket } = this;
    if (!socket) return;
    // Its end would be told only after a reply to the closing.
    socket.onclose = socket.onmessage = null;
    socket.close();
    this.end();
  }

  private end(): void {
    this.socket = null;
    this.rpc.detach();
    this.lose();
  }

  override logOut = (): void => {
    const { login } = this;
    void (async () => {
      if (login) await this.rpc.call("jumpseat.web.logout", { id: login.id }).catch(() => undefined);
      await keepLogin(null);
      this.login = null;
      this.problem.value = "";
      this.link.value = "locked";
      this.socket?.close();
    })();
  };

  /** Connect with a token that a person has typed. */
  override unlock(token: string): void {
    this.pass = token.trim();
    this.begin();
  }

  private begin(): void {
    this.link.value = "connecting";
    this.delayMs = FIRST_DELAY_MS;
    this.lostAt = Date.now();
    this.start();
  }

  private async connect(): Promise<void> {
    const token = this.pass ?? await this.provenLogin();
    const socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}/rpc`);
    this.socket = socket;
    socket.onopen = () => {
      this.rpc.attach({ send: (message) => socket.send(message), close: () => socket.close() });
      void this.shakeHands(socket, token);
    };
    socket.onmessage = (message) => this.rpc.receive(String(message.data));
    socket.onclose = () => this.end();
  }

  /** Return the token of the login that the page has, if the server has proved that it knows it. */
  private async provenLogin(): Promise<string | null> {
    this.login ??= await keptLogin();
    if (this.login === null) return null;
    const token = await prove(this.login, location.origin, (path) => fetch(path, { cache: "no-store" }));
    if (token !== null) return token;
    this.login = null;
    if (this.hasOpened) {
      // Prompts and answers must not go to a program that only has the port of the server.
      this.problem.value = "The server on this port does not know the login of this page: it may be another program. Its own page shows whether it is yours.";
      this.stranger.value = true;
      this.link.value = "locked";
      throw new Error(this.problem.value);
    }
    return null;
  }

  private lose(): void {
    if (this.link.value === "locked" || this.link.value === "failed") return;
    if (this.link.value === "open") this.lostAt = Date.now();
    if (Date.now() - this.lostAt > PATIENCE_MS) {
      this.problem.value = "The server has been gone for ten minutes.";
      this.remedies.value = [{ label: "Connect again", run: () => this.begin() }];
      this.link.value = "failed";
      return;
    }
    this.link.value = "lost";
    setTimeout(() => this.start(), this.delayMs);
    this.delayMs = Math.min(this.delayMs * 2, LONGEST_DELAY_MS);
  }

  private async shakeHands(socket: WebSocket, token: string | null): Promise<void> {
    try {
      const result = await this.rpc.call("connect", token ? { token } : {});
      this.version.value = String((result as any).version ?? "");
      if (token && token === this.pass) await this.logIn();
      this.pass = null;
      this.delayMs = FIRST_DELAY_MS;
      this.problem.value = "";
      this.hasOpened = true;
      this.askedAt = 0;
      this.link.value = "open";
      this.onOpen();
    } catch (error) {
      if (error instanceof RpcError && error.code !== 0) {
        const wasTyped = this.pass !== null;
        this.pass = null;
        // A used address in the bar of a tab that is logged in opens it again.
        if (wasTyped && (await keptLogin()) !== null) return socket.close();
        this.problem.value = token ? "This token or address is not valid (any more)." : "";
        this.login = null;
        this.link.value = "locked";
      }
      socket.close();
    }
  }

  /** Keep a login for the pages of this origin, which also connects to a server that is started again. */
  private async logIn(): Promise<void> {
    try {
      this.login = await importLogin(await this.rpc.call("jumpseat.web.login", { origin: location.origin }));
      await keepLogin(this.login);
    } catch {
      // A token without the right `all` gets no login: the page asks for it again.
    }
  }
}
