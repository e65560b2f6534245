/** Test agents from vitest and node:test. Scripts are described in docs/script.md, the whole in docs/testing.md. */

export type ProtocolName = "copilot" | "copilot-2" | "copilot-3" | "acp-1" | "acp-2" | "ahp";
export type Json = null | boolean | number | string | Json[] | { [name: string]: Json };
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- messages of other programs
export type Message = Record<string, any>;

/** A script is invalid or cannot be played, or the agent cannot be started. */
export class ScriptError extends Error {}

export interface ModelTurn {
  text?: string;
  deltas?: string[];
  reasoning?: string;
  tool_calls?: { name: string; arguments?: Record<string, unknown> | string; id?: string }[];
  delay_ms?: number;
  errors?: { status?: number; message?: string; code?: string; retry_after_s?: number }[];
  expect?: { user?: string; system?: string; tool_result?: string; tools?: string[]; model?: string };
  usage?: { input?: number; output?: number; cache_read?: number; cache_write?: number; reasoning?: number };
  stop_reason?: "end_turn" | "tool_use" | "max_tokens" | "refusal" | "content_filter" | "stop_sequence";
  hang?: boolean;
}

export interface ModelScript {
  turns?: ModelTurn[];
  prompts?: { when?: string; turns: ModelTurn[] }[];
  after_last?: "repeat" | "error";
}

export interface ServedModel extends AsyncDisposable {
  /** The base URL for an OpenAI-compatible provider: chat completions and Responses. */
  readonly url: string;
  /** The base URL for the SDK of Anthropic. */
  readonly anthropicUrl: string;
  /** The bodies of the requests so far. */
  readonly requests: Message[];
  close(): Promise<void>;
}

/** Serve a scripted model on loopback. */
export function serveModel(script: ModelScript): Promise<ServedModel>;

export interface AgentOptions {
  protocol?: ProtocolName;
  framing?: "content-length" | "lines";
  /** The working and home folder; by default, the current one. */
  folder?: string;
  /** Variables beside the few that an agent inherits; `null` removes one. */
  env?: Record<string, string | null>;
}

export interface Agent extends AsyncDisposable {
  readonly traffic: { direction: "->" | "<-"; message: Message }[];
  /** The violations of the rules of every conversation so far. */
  readonly problems: string[];
  /** The end of the agent's stderr. */
  readonly stderr: string;
  readonly exitCode: number | string | null;
  readonly ended: boolean;
  send(message: Message): void;
  /** Send bytes, or text, as they are. */
  write(data: string | Uint8Array): void;
  /** Send a request, and return its response; `undefined` if there is none in time. */
  request(method: string, params?: unknown, seconds?: number): Promise<Message | undefined>;
  /** Send a request, and return its result; rejects for an error, or for no response in time. */
  // eslint-disable-next-line @typescript-eslint/no-explicit-any -- results of other programs
  call(method: string, params?: unknown, seconds?: number): Promise<any>;
  /** Return the messages of the agent, from a place in the traffic on. */
  incoming(since?: number): Message[];
  /** Return the events so far, of a session or of all. */
  events(session?: string): Message[];
  /** Wait until `done()`, which is asked after each message; return its last result. */
  until(done: () => boolean, seconds: number): Promise<boolean>;
  /** Return the requests of the client that were never answered. */
  unanswered(): string[];
  /** Close the agent's input, and return its exit code; `undefined` if it runs on. */
  closeInput(seconds?: number): Promise<number | string | undefined>;
  /** Kill the agent and the processes that it has started. */
  kill(): Promise<void>;
}

/** Start an agent by its command. */
export function startAgent(command: string[], options?: AgentOptions): Agent;

export interface Script {
  name?: string;
  server?: string | string[];
  protocol?: ProtocolName;
  framing?: "content-length" | "lines";
  within?: number;
  model?: ModelScript;
  env?: Record<string, string | null>;
  files?: Record<string, string | { base64: string }>;
  greet?: boolean;
  unchecked?: boolean;
  steps: Record<string, unknown>[];
}

export interface Outcome {
  name: string;
  ok: boolean;
  steps: number;
  /** Messages for people; empty if the script passed. */
  failures: string[];
  conversation: { direction: "->" | "<-"; message: Message }[];
}

/** Read and check a script file: `.jsonl`, `.json` or `.yaml`. */
export function loadScript(path: string): Script;

/** Play a script, a path or an object. Rejects with a ScriptError for an invalid one. */
export function playScript(script: Script | string | URL, options?: { server?: string | string[] }): Promise<Outcome>;

/** Play a script; rejects with the differences if it fails. */
export function assertScript(script: Script | string | URL, options?: { server?: string | string[] }): Promise<Outcome>;

/** Return where a value differs from a pattern; if it matches, new captures are added to `captures`. */
export function differences(pattern: unknown, value: unknown, captures?: Record<string, unknown>): string[];

export const PROTOCOLS: Readonly<Record<ProtocolName, unknown>>;
