// The arguments of a call as what they are: a change, a file, a query, or values with their names. Pure.

import { createTwoFilesPatch } from "diff";

export type Shown =
  | { kind: "change"; path: string; diff: string }
  | { kind: "text"; name: string; text: string; language: string; path: string }
  | { kind: "values"; values: [name: string, value: string][] };

/** Longer texts are not compared: they are shown one below the other. */
const LONGEST_COMPARED = 20_000;
const BEFORE = ["old_str", "old_string", "oldString"];
const AFTER = ["new_str", "new_string", "newString"];
const PATHS = ["path", "file_path", "filePath"];
/** The arguments that are texts in a language; that of files goes by their name. */
const LANGUAGES: Record<string, string> = { query: "sql", script: "python", input: "diff", patch: "diff", command: "bash" };
const CONTENTS = new Set(["file_text", "content"]);

/** Return the arguments of a call; null for those that are best shown as JSON. */
export function shownArguments(tool: string, args: unknown): Shown[] | null {
  if (typeof args !== "object" || args === null || Array.isArray(args)) return null;
  const rest = { ...args } as Record<string, unknown>;
  const take = (names: readonly string[], from: Record<string, unknown>): string | null => {
    const name = names.find((one) => typeof from[one] === "string");
    const value = name === undefined ? null : from[name] as string;
    if (name !== undefined && from === rest) delete rest[name];
    return value;
  };
  const path = PATHS.map((name) => rest[name]).find((one): one is string => typeof one === "string") ?? "";
  const shown: Shown[] = [];
  const addChange = (from: Record<string, unknown>): void => {
    const [before, after] = [take(BEFORE, from), take(AFTER, from)];
    if (before !== null || after !== null) shown.push({ kind: "change", path, diff: changeOf(path, before ?? "", after ?? "") });
  };
  addChange(rest);
  if (Array.isArray(rest["edits"]) && rest["edits"].every((one) => typeof one === "object" && one !== null)) {
    for (const edit of rest["edits"]) addChange(edit as Record<string, unknown>);
    delete rest["edits"];
  }
  if (shown.length > 0) for (const name of PATHS) delete rest[name];
  const values: [string, string][] = [];
  for (const [name, value] of Object.entries(rest)) {
    if (value === null || value === undefined || value === "") continue;
    if (typeof value === "object") {
      if (!Array.isArray(value) || value.some((one) => typeof one === "object")) return null;
      values.push([name, value.join(", ")]);
    } else if (typeof value === "string" && (CONTENTS.has(name) || (name in LANGUAGES && (name !== "query" || tool === "sql")) || value.includes("\n"))) {
      shown.push({ kind: "text", name, text: value, language: LANGUAGES[name] ?? "", path: CONTENTS.has(name) ? path : "" });
    } else {
      values.push([name, String(value)]);
    }
  }
  return values.length > 0 ? [{ kind: "values", values }, ...shown] : shown;
}

/** Return a change of a part of a file, whose place is not known: the numbers of its lines mean nothing. */
function changeOf(path: string, before: string, after: string): string {
  const name = path || "file";
  if (before.length + after.length <= LONGEST_COMPARED) return createTwoFilesPatch(name, name, before, after, "", "", { context: LONGEST_COMPARED });
  const lines = (text: string, mark: string): string[] => (text === "" ? [] : text.replace(/\n$/, "").split("\n").map((line) => mark + line));
  const [old, made] = [lines(before, "-"), lines(after, "+")];
  return [`--- ${name}`, `+++ ${name}`, `@@ -1,${old.length} +1,${made.length} @@`, ...old, ...made, ""].join("\n");
}
