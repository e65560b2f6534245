// What the tools tell the model, from plain data. Pure. Lines and columns are counted from 1.

import { isAbsolute, relative, sep } from "node:path";

export interface Problem {
  path: string;
  line: number;
  column: number;
  /** 0 is an error, 3 a hint, as in VS Code. */
  severity: number;
  message: string;
  source?: string | undefined;
  code?: string | undefined;
}

export interface OpenEditor {
  path: string;
  unsaved: boolean;
  /** The line of the cursor, if a person sees the editor. */
  line: number | null;
  active: boolean;
}

export interface Selected {
  path: string;
  first: number;
  last: number;
  text: string;
}

export interface Run {
  terminal: string;
  command: string;
  folder: string;
  output: string;
  exitCode: number | null;
  running: boolean;
}

export const SEVERITIES = ["error", "warning", "info", "hint"] as const;
const MOST_PROBLEMS = 200;
const LONGEST_OUTPUT = 20_000;

/** Return a path as the model is told it: relative to the folder of the session, if it is inside. */
export function shown(path: string, folder: string): string {
  const inside = relative(folder, path);
  return inside === "" || inside.startsWith("..") || isAbsolute(inside) ? path : inside.split(sep).join("/");
}

export function problemsText(problems: readonly Problem[], folder: string, lowest: number): string {
  const found = problems.filter((one) => one.severity <= lowest).sort((one, other) => one.severity - other.severity || one.path.localeCompare(other.path) || one.line - other.line);
  if (found.length === 0) return "No diagnostics.";
  const lines = found.slice(0, MOST_PROBLEMS).map((one) => {
    const origin = [one.source, one.code].filter(Boolean).join(" ");
    return `${shown(one.path, folder)}:${one.line}:${one.column}: ${SEVERITIES[one.severity] ?? "hint"}: ${one.message.replace(/\s*\n\s*/g, " ")}${origin ? ` [${origin}]` : ""}`;
  });
  if (found.length > MOST_PROBLEMS) lines.push(`${found.length - MOST_PROBLEMS} more are left out.`);
  return lines.join("\n");
}

export function editorsText(editors: readonly OpenEditor[], folder: string): string {
  if (editors.length === 0) return "No file is open in the editor.";
  return editors.map((one) => {
    const marks = [
      one.active ? `the user is here, line ${one.line}` : one.line !== null ? `visible, line ${one.line}` : "",
      one.unsaved ? "unsaved changes" : "",
    ].filter(Boolean);
    return shown(one.path, folder) + (marks.length > 0 ? ` (${marks.join("; ")})` : "");
  }).join("\n");
}

export function selectionText(selected: Selected | null, folder: string): string {
  if (!selected || selected.text === "") return "Nothing is selected.";
  return `${shown(selected.path, folder)}, lines ${selected.first} to ${selected.last}:\n${selected.text}`;
}

export function runsText(runs: readonly Run[], folder: string): string {
  if (runs.length === 0) return "No command was run in a terminal of the editor since it was opened, or its shell does not report commands.";
  return runs.map((run) => {
    const end = run.running ? "still running" : run.exitCode === null ? "ended" : `exit code ${run.exitCode}`;
    const place = run.folder ? ` in ${shown(run.folder, folder)}` : "";
    // Editors lose the output of commands that end at once.
    const output = run.output === "" ? "[no output was reported]" : run.output.length > LONGEST_OUTPUT ? `[the beginning is left out]\n${run.output.slice(-LONGEST_OUTPUT)}` : run.output;
    return `$ ${run.command}\n${output.trimEnd()}\n<${run.terminal}${place}, ${end}>`;
  }).join("\n\n");
}

/** Return the output of a terminal without the sequences that colour it and move its cursor. */
export function plainOutput(text: string): string {
  return text
    // eslint-disable-next-line no-control-regex
    .replace(/\x1b(?:\][^\x07\x1b]*(?:\x07|\x1b\\)?|[P^_X][^\x1b]*(?:\x1b\\)?|\[[0-?]*[ -/]*[@-~]|[ -/]*[0-~])/g, "")
    .replace(/\r\n/g, "\n")
    // A line that was overwritten, such as a progress bar, is as it was last.
    .replace(/^[^\n]*\r(?=[^\n])/gm, "")
    // eslint-disable-next-line no-control-regex
    .replace(/[\x00-\x08\x0b-\x1f\x7f]/g, "");
}
