// The process of the server: started when it is needed, over stdio, and again a few times after it has ended.

import { spawn, type ChildProcessWithoutNullStreams } from "node:child_process";
import { isAbsolute } from "node:path";
import { Rpc } from "../../web/src/rpc.ts";
import { frame, Frames } from "./framing.ts";

export interface Command {
  /** Of the executable, absolute. A name is not looked up: the system may look into the folder first. */
  path: string;
  arguments: readonly string[];
  environment: NodeJS.ProcessEnv;
  folder: string;
}

export type Status =
  | { kind: "stopped" }
  | { kind: "starting" }
  | { kind: "ready"; version: string }
  /** `missing`: there is no such executable. */
  | { kind: "failed"; problem: string; missing: boolean };

const PROTOCOL = 3;
const HANDSHAKE_MS = 30_000;
const END_MS = 3_000;
const RESTART_MS = 500;
/** A server that ends more often than this within `FEW_MS` is not started again. */
const MOST_RESTARTS = 3;
const FEW_MS = 60_000;

export class Server {
  /** The messages of the pages are in their own records. */
  readonly rpc = new Rpc(0);
  status: Status = { kind: "stopped" };
  onStatus: (status: Status) => void = () => undefined;
  private process: ChildProcessWithoutNullStreams | null = null;
  private starting: Promise<void> | null = null;
  private ends: number[] = [];
  private again: NodeJS.Timeout | undefined;
  /** Counts the stops: a start that was stopped must not go on. */
  private stops = 0;

  constructor(private readonly command: () => Promise<Command>, private readonly log: (text: string) => void) {}

  /** Start the server unless it runs. The status says whether that succeeded. */
  start(): Promise<void> {
    if (this.status.kind === "ready") return Promise.resolve();
    this.starting ??= this.launch().finally(() => { this.starting = null; });
    return this.starting;
  }

  async restart(): Promise<void> {
    this.ends = [];
    await this.stop();
    await this.start();
  }

  /** End the server: it ends when its input does, and is killed if it takes too long. */
  async stop(): Promise<void> {
    clearTimeout(this.again);
    this.stops += 1;
    const child = this.process;
    this.process = null;
    this.rpc.detach();
    this.tell({ kind: "stopped" });
    if (child && child.pid !== undefined && child.exitCode === null && child.signalCode === null) {
      const gone = new Promise<void>((resolve) => child.once("exit", () => resolve()));
      child.stdin.end();
      const timer = setTimeout(() => child.kill("SIGKILL"), END_MS);
      await gone;
      clearTimeout(timer);
    }
    await this.starting;
  }

  private async launch(): Promise<void> {
    clearTimeout(this.again);
    this.tell({ kind: "starting" });
    const stops = this.stops;
    const command = await this.command();
    if (this.stops !== stops) return;
    if (!isAbsolute(command.path)) return this.tell({ kind: "failed", problem: `cannot find the command ${command.path}`, missing: true });
    const child = spawn(command.path, [...command.arguments, "--headless", "--stdio"], {
      cwd: command.folder, env: command.environment, windowsHide: true,
    });
    this.process = child;
    const frames = new Frames();
    child.stdout.on("data", (chunk: Buffer) => {
      try {
        for (const message of frames.push(chunk)) this.rpc.receive(message);
      } catch (error) {
        this.log(`${messageOf(error)}\n`);
        child.kill("SIGKILL");
      }
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => this.log(text));
    // The end of the process tells what a failure to write means.
    child.stdin.on("error", () => undefined);
    const ended = new Promise<string>((resolve) => {
      child.once("error", (error: NodeJS.ErrnoException) => resolve(error.code === "ENOENT" ? `cannot find the command ${command.path}` : error.message));
      child.once("exit", (code, signal) => resolve(signal ? `the server was ended by ${signal}` : `the server has ended with the exit code ${code}`));
    });
    this.rpc.attach({ send: (message) => void child.stdin.write(frame(message)), close: () => child.kill() });
    const shake = this.rpc.call("connect", {}) as Promise<{ version?: string; protocolVersion?: number }>;
    const problem = await Promise.race([
      shake.then((result) => (result.protocolVersion === PROTOCOL ? null : `the server speaks the protocol ${result.protocolVersion}: expected ${PROTOCOL}`), messageOf),
      ended,
      later(HANDSHAKE_MS).then(() => `the server did not answer within ${HANDSHAKE_MS / 1000} s`),
    ]);
    if (this.process !== child) return;
    if (problem !== null) {
      child.kill("SIGKILL");
      this.process = null;
      this.rpc.detach();
      return this.tell({ kind: "failed", problem, missing: problem.startsWith("cannot find") });
    }
    this.tell({ kind: "ready", version: String((await shake).version ?? "") });
    void ended.then((reason) => {
      if (this.process === child) this.ended(reason);
    });
  }

  private ended(reason: string): void {
    this.process = null;
    this.rpc.detach();
    this.log(`${reason}\n`);
    const now = Date.now();
    this.ends = [...this.ends.filter((time) => now - time < FEW_MS), now];
    if (this.ends.length > MOST_RESTARTS) return this.tell({ kind: "failed", problem: reason, missing: false });
    this.tell({ kind: "starting" });
    this.again = setTimeout(() => void this.start(), RESTART_MS);
  }

  private tell(status: Status): void {
    this.status = status;
    this.onStatus(status);
  }
}

function later(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms).unref());
}

export function messageOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
