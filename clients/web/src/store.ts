// The state of the page: the list of sessions, the open ones, and what a person does with them.

import { batch, computed, signal, type Signal } from "@preact/signals";
import type { Methods } from "./generated/wire.ts";
import { Drafts, NEW, PASTED, promptOf, type Attached } from "./drafts.ts";
import { Pace } from "./pace.ts";
import { RpcError, UNSENT, type Rpc } from "./rpc.ts";
import { reduce, settle, withCalls } from "./state/reduce.ts";
import { emptySession, type Question, type SessionState, type WireEvent } from "./state/types.ts";

export interface Listed {
  sessionId: string;
  startTime: string;
  modifiedTime: string;
  summary?: string;
  name?: string;
  context?: { cwd: string; repository?: string; branch?: string };
  oneOff?: boolean;
  unanswered?: boolean;
}

export type { Attached } from "./drafts.ts";

export type Setup = Methods["jumpseat.setup.get"]["result"];
export type DayUsage = Methods["jumpseat.web.usage"]["result"]["usage"][number];
export type Description = Methods["jumpseat.web.describe"]["result"]["sessions"][number];

/** `live`: open in this server, and answers prompts. `stored`: read from the log. */
export interface OpenSession {
  id: string;
  status: "loading" | "live" | "stored" | "elsewhere" | "missing";
  problem: string;
  state: SessionState;
  todos: { id?: string; title?: string; status?: string }[];
  queued: string[];
}

/** Where the searched words are in a session. */
export interface Hit {
  excerpt: string;
  /** The prompt or answer; null for the title and the folder. */
  eventId: string | null;
}

/** A page of a log; `cursor` is for the page before. */
interface LogPage {
  events: WireEvent[];
  cursor: string;
  hasMore: boolean;
}

/** The name of the page among clients; an editor gives its own. */
const CLIENT_NAME = "jumpseat-web";
/** The events of the first page of a log, which is shown at once, and of the others. */
const FIRST_EVENTS = 200;
const PAGE_EVENTS = 1000;
const DESCRIBED = 60;
/** The sessions that are searched with one request. */
const SEARCHED = 100;
const POLL_MS = 4000;
/** Every so many polls, hidden pages ask, too: their title tells of questions. */
const HIDDEN_POLLS = 5;

export class Store {
  readonly sessions = signal<Listed[]>([]);
  readonly listed = signal(false);
  readonly descriptions = signal<ReadonlyMap<string, Description>>(new Map());
  readonly models = signal<{ id: string; name: string }[]>([]);
  readonly problem = signal("");
  readonly said = signal("");
  readonly messagesVersion = signal(0);
  /** The title of the shown view; the page puts the number of waiting sessions before it. */
  readonly title = signal("");
  readonly drafts: Drafts;
  /** The sessions that have ended their work since a person looked at them. */
  readonly finished = signal<ReadonlySet<string>>(new Set());
  /** Attachments that the host of the page gives to the prompt box, which takes them. */
  readonly offered = signal<readonly Attached[]>([]);
  private readonly opened = new Map<string, Signal<OpenSession>>();
  private readonly arrived = new Map<string, WireEvent[]>();
  private readonly loading = new Set<string>();
  /** Ends when the latest events of the session that was loaded last are there. */
  private latest: Promise<unknown> = Promise.resolve();
  private readonly pace = new Pace(() => this.flush());
  private listing = false;
  /** The excerpts of the sessions whose texts have the searched words, by session; null without a search. */
  readonly found = signal<ReadonlyMap<string, Hit> | null>(null);
  private searched = "";

  readonly folders = computed(() => {
    const counts = new Map<string, number>();
    for (const session of this.sessions.value) {
      const folder = session.context?.cwd;
      if (folder) counts.set(folder, (counts.get(folder) ?? 0) + 1);
    }
    return [...counts].sort((one, other) => other[1] - one[1]).map(([folder]) => folder);
  });

  /** The providers and whether sessions have a model; null while that is unknown, or not for this client to know. */
  readonly setup = signal<Setup | null>(null);
  readonly usage = signal<DayUsage[] | null>(null);

  constructor(readonly rpc: Rpc) {
    this.drafts = new Drafts(rpc);
    rpc.onNotification = (method, params) => this.handle(method, params);
    let scheduled = false;
    rpc.onMessage = () => {
      if (scheduled) return;
      scheduled = true;
      setTimeout(() => {
        scheduled = false;
        this.messagesVersion.value += 1;
      }, 100);
    };
    let polls = 0;
    setInterval(() => {
      polls += 1;
      if ((!document.hidden || polls % HIDDEN_POLLS === 0) && [...this.descriptions.value.values()].some((one) => one.state !== "stored")) void this.describe();
    }, POLL_MS);
  }

  /** Load everything again, after a connection. */
  async begin(): Promise<void> {
    // What failed because the server had gone is over.
    this.problem.value = "";
    for (const id of this.opened.keys()) void this.load(id);
    // The list may be long: the first rows of the shown session do not wait for it.
    await this.latest;
    await Promise.all([this.list(), this.readModels()]);
  }

  async readModels(): Promise<void> {
    try {
      const { models } = await this.rpc.call("models.list", {});
      this.models.value = models.map((model) => ({ id: String(model["id"]), name: String(model["name"] ?? model["id"]) }));
    } catch {
      // Without providers, there is nothing to choose.
    }
  }

  async readSetup(): Promise<void> {
    try {
      this.setup.value = await this.rpc.call("jumpseat.setup.get", {});
    } catch {
      this.setup.value = null;
    }
  }

  /** Read the tokens and the cost of all sessions, by day and model. */
  async readUsage(days: number): Promise<void> {
    try {
      this.usage.value = (await this.rpc.call("jumpseat.web.usage", { days })).usage;
    } catch {
      this.usage.value = null;
    }
  }

  async list(): Promise<void> {
    try {
      const { sessions } = await this.rpc.call("session.list", {});
      const sorted = (sessions as Listed[]).sort((one, other) => (one.modifiedTime < other.modifiedTime ? 1 : one.modifiedTime > other.modifiedTime ? -1 : 0));
      batch(() => {
        this.sessions.value = sorted;
        this.listed.value = true;
        for (const [id, session] of this.opened) {
          const title = this.titleOf(id);
          if (title && title !== session.value.state.title) session.value = { ...session.value, state: { ...session.value.state, title } };
        }
      });
      await this.describe();
    } catch (error) {
      if (!(error instanceof RpcError && error.code === 0)) this.fail(error);
    }
  }

  /** Read the state, the tokens and the cost of the latest sessions, and of the open ones. */
  async describe(ids?: string[]): Promise<void> {
    const wanted = ids ?? [...new Set([...this.opened.keys(), ...this.sessions.value.slice(0, DESCRIBED).map((one) => one.sessionId)])].slice(0, 200);
    try {
      const { sessions } = await this.rpc.call("jumpseat.web.describe", { sessionIds: wanted, openToo: !ids });
      this.take(sessions);
    } catch (error) {
      if (error instanceof RpcError && error.code !== 0) this.fail(error);
    }
  }

  private take(described: Description[]): void {
    const before = this.descriptions.value;
    const next = new Map(before);
    const done: string[] = [];
    for (const one of described) {
      const last = before.get(one.sessionId);
      next.set(one.sessionId, one);
      if (last?.state === "working" && one.state !== "working") done.push(one.sessionId);
      // The open session says so itself.
      if ((one.openQuestions ?? 0) > (last?.openQuestions ?? 0) && !this.opened.has(one.sessionId)) this.said.value = `${one.title || "A session"} asks you something`;
    }
    batch(() => {
      this.descriptions.value = next;
      if (done.length > 0) this.finished.value = new Set([...this.finished.value, ...done]);
    });
  }

  /** Note that a person looks at a session. */
  seen(id: string): void {
    if (!this.finished.value.has(id)) return;
    const next = new Set(this.finished.value);
    next.delete(id);
    this.finished.value = next;
  }

  /** The number of open questions of a session. */
  asks(id: string): number {
    const opened = this.opened.get(id)?.value;
    return opened?.status === "live" ? opened.state.questions.length : this.descriptions.value.get(id)?.openQuestions ?? 0;
  }

  /** The sessions that wait for a person. */
  readonly asking = computed(() => [...new Set([...this.descriptions.value.keys(), ...this.opened.keys()])].filter((id) => this.asks(id) > 0));

  /** Search the texts of all sessions, the latest first; `found` grows while that goes on. */
  async search(text: string): Promise<void> {
    this.searched = text;
    this.found.value = text ? new Map() : null;
    const ids = this.sessions.value.map((one) => one.sessionId);
    for (let at = 0; text && at < ids.length; at += SEARCHED) {
      try {
        const { matches } = await this.rpc.call("jumpseat.web.search", { text, sessionIds: ids.slice(at, at + SEARCHED) });
        // The person has typed something else meanwhile.
        if (this.searched !== text) return;
        if (matches.length === 0) continue;
        this.found.value = new Map([...this.found.value ?? [], ...matches.map((one) => [one.sessionId, { excerpt: one.excerpt, eventId: one.eventId ?? null }] as const)]);
        const unknown = matches.map((one) => one.sessionId).filter((id) => !this.descriptions.value.has(id));
        if (unknown.length > 0) await this.describe(unknown);
      } catch (error) {
        return this.fail(error);
      }
    }
  }

  /** Return the session with an id, which is loaded if that has not happened yet. */
  open(id: string): Signal<OpenSession> {
    let found = this.opened.get(id);
    if (!found) {
      found = signal<OpenSession>({ id, status: "loading", problem: "", state: emptySession(id), todos: [], queued: [] });
      this.opened.set(id, found);
      void this.load(id);
    }
    return found;
  }

  /** Load a session from its events, and join it if it is open in the server. */
  async load(id: string): Promise<void> {
    const session = this.opened.get(id);
    if (!session || this.loading.has(id)) return;
    this.loading.add(id);
    try {
      // Asked for at once, and shown before the session is joined: the rest is not needed for the first rows.
      const latest = this.readPage(id);
      this.latest = latest.catch(() => undefined);
      const { sessions } = await this.rpc.call("jumpseat.web.describe", { sessionIds: [id] });
      const description = sessions[0];
      if (!description) {
        session.value = { ...session.value, status: "missing", problem: "There is no such session." };
        return;
      }
      this.descriptions.value = new Map(this.descriptions.value).set(id, description);
      const isLive = description.state === "working" || description.state === "idle";
      this.seen(id);
      void latest.then(({ events, hasMore }) => {
        if (!hasMore || session.value.status !== "loading") return;
        session.value = { ...session.value, state: { ...settle(reduce(emptySession(id), events)), title: this.titleOf(id) } };
      }, () => undefined);
      if (isLive) await this.join(id, description.clients === 0);
      // What comes after a session was joined is sent as notifications, so that its log is read from then on.
      const events = await this.readEvents(id, isLive, isLive ? this.readPage(id) : latest);
      if (isLive) events.push(...await this.openQuestions(id, events.at(-1)?.timestamp ?? new Date().toISOString()));
      const known = new Set(events.map((event) => event.id));
      const later = (this.arrived.get(id) ?? []).filter((event) => !known.has(event.id));
      this.arrived.delete(id);
      let state = reduce(emptySession(id), events);
      const { calls } = await this.rpc.call("jumpseat.web.modelCalls", { sessionId: id });
      state = withCalls(state, calls);
      if (!isLive) state = settle(state);
      else {
        // An idle session may wait for an answer nevertheless, for example of an earlier client.
        if (description.state === "idle") state = { ...settle(state), questions: state.questions };
        state = await this.dropAnswered(reduce(state, later));
      }
      state.title = this.titleOf(id) || state.title;
      this.entitle(id, state.title);
      session.value = { ...session.value, status: isLive ? "live" : description.state === "elsewhere" ? "elsewhere" : "stored", problem: "", state };
      if (isLive) void this.readTodos(id);
      await this.settleDraft(session.value, isLive);
    } catch (error) {
      // Without a connection, the page says so, and loads the session as soon as there is one.
      if (!(error instanceof RpcError && error.code === 0)) session.value = { ...session.value, problem: messageOf(error) };
    } finally {
      this.loading.delete(id);
      this.pace.soon();
    }
  }

  /** Find out whether a prompt arrived whose connection was lost, and show what was written before. */
  private async settleDraft(session: OpenSession, isLive: boolean): Promise<void> {
    const { sending } = this.drafts.of(session.id).value;
    if (sending?.unsure) {
      if (isLive) await this.readQueue(session.id);
      const queued = this.opened.get(session.id)?.value.queued ?? [];
      const prompt = promptOf(sending.text, sending.files);
      if (promptsWith(session.state, prompt) > sending.before || queued.includes(prompt)) this.drafts.sent(session.id);
      else this.drafts.restore(session.id);
    }
    const last = session.state.rows.findLast((row) => row.kind === "prompt");
    await this.drafts.opened(session.id, isLive, last?.kind === "prompt" ? last.text : "");
  }

  /** Show the title of a session that the list does not know yet. */
  private entitle(id: string, title: string): void {
    if (title && this.titleOf(id) === "") {
      this.sessions.value = this.sessions.value.map((one) => (one.sessionId === id ? { ...one, summary: title } : one));
    }
  }

  private titleOf(id: string): string {
    const metadata = this.sessions.value.find((one) => one.sessionId === id);
    return metadata?.name ?? metadata?.summary ?? this.descriptions.value.get(id)?.title ?? "";
  }

  private async join(id: string, alone: boolean): Promise<void> {
    await this.rpc.call("session.resume", {
      sessionId: id, clientName: CLIENT_NAME, disableResume: true, continuePendingWork: true, requestPermission: true, requestElicitation: true,
      // Other clients are asked first. Their questions are shown as well, and answered by their events.
      requestUserInput: true, requestExitPlanMode: true, requestAutoModeSwitch: true, standsIn: true,
      ...(alone ? { streaming: true } : {}),
    } as Methods["session.resume"]["params"]);
  }

  /** Read a page of the log of a session: the latest events, or those before a page. */
  private async readPage(id: string, cursor?: string): Promise<LogPage> {
    const page = await this.rpc.call("sessions.readPersistedEvents", { sessionId: id, max: cursor ? PAGE_EVENTS : FIRST_EVENTS, direction: "backward", ...(cursor ? { cursor } : {}) });
    if (page.cursorStatus === "expired") throw new Error("the log was cut while it was read: load the session again");
    return { events: page.events as unknown as WireEvent[], cursor: page.cursor, hasMore: page.hasMore && Boolean(page.cursor) };
  }

  /** Read the events of a session from its log, the latest first; `latest` is the first page. */
  private async readEvents(id: string, isLive: boolean, latest: Promise<LogPage>): Promise<WireEvent[]> {
    const pages: WireEvent[][] = [];
    try {
      let page = await latest;
      for (;;) {
        pages.push(page.events);
        if (!page.hasMore) return pages.reverse().flat();
        page = await this.readPage(id, page.cursor);
      }
    } catch (error) {
      if (!isLive) throw error;
      // The log of a session in the storage of a client is not on the disk.
      const { events } = await this.rpc.call("session.getMessages", { sessionId: id });
      return events as unknown as WireEvent[];
    }
  }

  /** Return the questions that were asked before the page joined a session, as events; the log does not have them. `time` is one of the server, whose clock may differ. */
  private async openQuestions(id: string, time: string): Promise<WireEvent[]> {
    const { questions } = await this.rpc.call("jumpseat.web.openQuestions", { sessionId: id });
    return questions.map(({ type, data }) => ({ id: `open ${String(data["requestId"])}`, timestamp: time, type, data, ephemeral: true }));
  }

  /** Remove permission requests that a killed server has left in the log. */
  private async dropAnswered(state: SessionState): Promise<SessionState> {
    if (!state.questions.some((question) => question.kind === "permission")) return state;
    const { items } = await this.rpc.call("session.permissions.pendingRequests", { sessionId: state.id });
    const open = new Set(items.map((item) => item["requestId"]));
    return { ...state, questions: state.questions.filter((question) => question.kind !== "permission" || open.has(question.id)) };
  }

  private handle(method: string, params: any): void {
    if (method === "session.event") {
      const list = this.arrived.get(params.sessionId) ?? [];
      list.push(params.event);
      this.arrived.set(params.sessionId, list);
      this.pace.soon();
    } else if (method === "session.lifecycle" && !this.listing) {
      this.listing = true;
      setTimeout(() => {
        this.listing = false;
        void this.list();
      }, 300);
    }
  }

  private flush(): void {
    batch(() => {
      for (const [id, events] of [...this.arrived]) {
        const session = this.opened.get(id);
        if (!session) {
          this.arrived.delete(id);
          continue;
        }
        if (this.loading.has(id) || session.value.status === "loading") continue;
        this.arrived.delete(id);
        const before = session.value.state;
        const state = reduce(before, events);
        session.value = { ...session.value, state };
        if (state.title !== before.title) this.entitle(id, state.title);
        if (state.todosVersion !== before.todosVersion) void this.readTodos(id);
        if (state.queueVersion !== before.queueVersion) void this.readQueue(id);
        if (state.questions.some((question) => !before.questions.includes(question))) this.said.value = `${state.title || "The session"} asks you something`;
        if (before.working && !state.working) {
          this.said.value = "The session is done";
          void this.describe([id]);
        }
        if (events.some((event) => event.type === "session.snapshot_rewind")) void this.load(id);
      }
    });
  }

  private async readTodos(id: string): Promise<void> {
    try {
      const { rows } = (await this.rpc.call("session.plan.readSqlTodos", { sessionId: id })) as any;
      const session = this.opened.get(id);
      if (session) session.value = { ...session.value, todos: rows ?? [] };
    } catch {
      // A session without a database has no todos.
    }
  }

  private async readQueue(id: string): Promise<void> {
    try {
      const { items } = (await this.rpc.call("session.queue.pendingItems", { sessionId: id })) as any;
      const session = this.opened.get(id);
      if (session) session.value = { ...session.value, queued: (items ?? []).map((item: any) => String(item.displayText ?? item.prompt ?? item.text ?? "")) };
    } catch {
      // The queue is shown for orientation only.
    }
  }

  // --- what a person does ---------------------------------------------------------------------------------------

  /** Begin a session; with the draft of a new one, if `prompted`. Returns its id. */
  async create(folder: string, model: string, prompted = false): Promise<string | null> {
    try {
      const { sessionId } = await this.rpc.call("session.create", {
        clientName: CLIENT_NAME, streaming: true, requestPermission: true, requestElicitation: true, requestUserInput: true,
        requestExitPlanMode: true, requestAutoModeSwitch: true, keepInterruptedAnswers: true, enableFileChangeTracking: true,
        ...(folder ? { workingDirectory: folder } : {}), ...(model ? { model } : {}),
      } as Methods["session.create"]["params"]);
      if (prompted) {
        const { text, files } = this.drafts.of(NEW).value;
        this.drafts.change(sessionId, { text, files });
        this.drafts.forget(NEW);
        await this.send(sessionId, false);
      }
      void this.list();
      return sessionId;
    } catch (error) {
      this.fail(error);
      return null;
    }
  }

  /** Delete a session with its files. */
  delete(id: string): Promise<boolean> {
    return this.attempt(async () => {
      await this.rpc.call("session.delete", { sessionId: id });
      this.drafts.forget(id);
      this.opened.delete(id);
      const descriptions = new Map(this.descriptions.value);
      descriptions.delete(id);
      batch(() => {
        this.descriptions.value = descriptions;
        this.sessions.value = this.sessions.value.filter((one) => one.sessionId !== id);
      });
      this.said.value = "The session is deleted";
    });
  }

  /** Open a stored session in the server, so that it can be prompted. */
  async revive(id: string): Promise<void> {
    await this.attempt(async () => {
      await this.rpc.call("session.resume", {
        sessionId: id, clientName: CLIENT_NAME, continuePendingWork: false, requestPermission: true, requestElicitation: true, requestUserInput: true,
        requestExitPlanMode: true, requestAutoModeSwitch: true, streaming: true, keepInterruptedAnswers: true,
      } as Methods["session.resume"]["params"]);
      await this.load(id);
    });
  }

  /** Send the draft of a session, once: while it is on its way, nothing else is sent. */
  async send(id: string, steer: boolean): Promise<void> {
    const sending = this.drafts.begin(id, (text) => promptsWith(this.opened.get(id)?.value.state, text));
    if (!sending) return;
    const attachments = sending.files.map((one) => one.wire).filter((wire) => wire["type"] !== PASTED);
    try {
      await this.rpc.call("session.send", {
        sessionId: id, prompt: promptOf(sending.text, sending.files), mode: steer ? "immediate" : "enqueue",
        ...(attachments.length > 0 ? { attachments } : {}),
      } as Methods["session.send"]["params"]);
      this.drafts.sent(id);
    } catch (error) {
      // The log tells, as soon as the session is loaded again.
      if (error instanceof RpcError && error.code === 0 && error.data !== UNSENT) this.drafts.doubt(id);
      else {
        this.drafts.restore(id);
        this.fail(error);
      }
    }
  }

  stop(id: string): Promise<boolean> {
    return this.attempt(() => this.rpc.call("session.abort", { sessionId: id }));
  }

  switchModel(id: string, model: string): Promise<boolean> {
    return this.attempt(() => this.rpc.call("session.model.switchTo", { sessionId: id, modelId: model }));
  }

  decide(id: string, question: Question, result: any): Promise<boolean> {
    return this.attempt(async () => {
      const { success } = await this.rpc.call("session.permissions.handlePendingPermissionRequest", { sessionId: id, requestId: question.id, result });
      if (!success) this.problem.value = "Somebody else has answered already.";
    });
  }

  answer(id: string, question: Question, answer: any): Promise<boolean> {
    const common = { sessionId: id, requestId: question.id };
    return this.attempt<unknown>(() => {
      switch (question.kind) {
        case "input": return this.rpc.call("session.ui.handlePendingUserInput", { ...common, response: answer });
        case "plan": return this.rpc.call("session.ui.handlePendingExitPlanMode", { ...common, response: answer });
        case "form": return this.rpc.call("session.ui.handlePendingElicitation", { ...common, result: answer });
        case "switch": return this.rpc.call("session.ui.handlePendingAutoModeSwitch", { ...common, response: answer });
        case "permission": return this.rpc.call("session.permissions.handlePendingPermissionRequest", { ...common, result: answer });
      }
    });
  }

  async fork(id: string, eventId: string | null): Promise<string | null> {
    try {
      const { sessionId } = await this.rpc.call("sessions.fork", { sessionId: id, ...(eventId ? { toEventId: eventId } : {}) });
      void this.list();
      return sessionId;
    } catch (error) {
      this.fail(error);
      return null;
    }
  }

  async rewind(id: string, eventId: string, files: boolean): Promise<boolean> {
    return this.attempt(async () => {
      const result = await this.rpc.call("session.history.rewind", { sessionId: id, eventId, mode: files ? "conversation-and-files" : "conversation" });
      if (result.outcome !== "success") throw new Error(result.error ?? result.outcome.replaceAll("-", " "));
      const skipped = result.skippedFiles.map((file) => file.path);
      this.said.value = skipped.length > 0 ? `Not restored, because they were changed since: ${skipped.join(", ")}` : "The session is rewound";
      if (skipped.length > 0) this.problem.value = this.said.value;
      await this.load(id);
    });
  }

  rename(id: string, name: string): Promise<boolean> {
    return this.attempt(async () => {
      await this.rpc.call("session.name.set", { sessionId: id, name });
      await this.list();
      await this.load(id);
    });
  }

  private async attempt<T>(action: () => Promise<T>): Promise<boolean> {
    try {
      await action();
      return true;
    } catch (error) {
      this.fail(error);
      return false;
    }
  }

  private fail(error: unknown): void {
    this.problem.value = messageOf(error);
  }
}

/** The number of prompts with a text. */
function promptsWith(state: SessionState | undefined, text: string): number {
  return state?.rows.filter((row) => row.kind === "prompt" && row.text === text).length ?? 0;
}

function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
