// The messages between the extension and its pages.

export type ToPage =
  | { kind: "rpc"; text: string }
  | { kind: "link"; link: "connecting" | "open" | "lost" | "failed"; problem: string; version: string; remedies: { label: string; command: string }[] }
  | { kind: "folders"; folders: string[] }
  | { kind: "new" }
  | { kind: "go"; hash: string }
  | { kind: "shown"; requestId: string }
  | { kind: "attach"; name: string; wire: Record<string, unknown> };

export type FromPage =
  | { kind: "ready" }
  | { kind: "rpc"; text: string }
  | { kind: "save"; name: string; content: string }
  | { kind: "open"; path: string; line: number | null }
  | { kind: "command"; command: string };
